"""A migration reads from a running node, and a command compares two running nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.chainspec.genesis import parse_genesis
from ophion.cli.main import main
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CommandError
from ophion.migration.rpc_source import RpcSource
from ophion.runtime.blocking_json_rpc import JsonRpcClient
from ophion.testing.besu_database import read_chain
from ophion.testing.node_process import NodeProcess
from tests.conftest import DATA
from tests.integration.command import ophion

CHAINS = {
    "osaka": (DATA / "chains" / "besu26-qbft-osaka", "blocks.rlp"),
    "gapped": (DATA / "chains" / "besu-qbft-shanghai-cancun", "blocks.rlp"),
    "ommers": (DATA / "original-chain", "test.blocks"),
}


@pytest.fixture(scope="module")
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, NodeProcess]]:
    """Start a node with one of the test chains and the API DEBUG."""
    folder, blocks = CHAINS[request.param]
    data, genesis = tmp_path_factory.mktemp("nodes") / "old", f"--genesis-file={folder / 'genesis.json'}"
    ophion("blocks", "import", f"--from={folder / blocks}", genesis, f"--data-path={data}").succeeded()
    with NodeProcess(data, genesis, "--rpc-http-api=ETH,WEB3,NET,DEBUG") as node:
        yield request.param, node


def url(node: NodeProcess) -> str:
    return f"http://127.0.0.1:{node.ports['json-rpc']}"


@pytest.mark.parametrize("old", CHAINS, indirect=True)
def test_both_ways_give_the_exported_blocks(old: tuple[str, NodeProcess]) -> None:
    folder, file = CHAINS[old[0]]
    written = list(read_chain(folder, file))
    source = RpcSource(
        JsonRpcClient(url(old[1])), engine_for(parse_genesis((folder / "genesis.json").read_bytes()).spec)
    )
    assert source.client == "Ophion"
    assert source.has_raw_blocks
    assert source.head().hash == source.hash_at(len(written) - 1) == written[-1][0].hash
    assert source.hash_at(len(written)) is None
    assert list(source.blocks(0, len(written) - 1)) == [raw for _, raw in written]
    source.has_raw_blocks = False
    assert list(source.blocks(0, len(written) - 1)) == [raw for _, raw in written]
    with pytest.raises(CommandError, match=f"Ophion has no block of block {len(written)}"):
        list(source.blocks(len(written), len(written)))


@pytest.mark.parametrize("old", ["osaka"], indirect=True)
def test_a_running_node_is_migrated_and_compared(
    old: tuple[str, NodeProcess], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, node = old
    folder, file = CHAINS[name]
    data, genesis = tmp_path / "data", f"--genesis-file={folder / 'genesis.json'}"
    done = ophion("migrate", f"--rpc={url(node)}", f"--data-path={data}", genesis).succeeded()
    assert done.out.endswith("equals Ophion's\n")
    command = ("migrate", "--compare", f"--old={url(node)}", "--seed=1", "--samples=200")
    with NodeProcess(data, genesis) as new:
        report = ophion(*command, f"--new={url(new)}").succeeded()
    assert "200 answers compared up to block 37, 0 differ (--seed=1)" in report.out
    shorter = tmp_path / "shorter"
    arguments = (f"--from={folder / file}", genesis, f"--data-path={shorter}", "--end-block=20")
    ophion("blocks", "import", *arguments).succeeded()
    with NodeProcess(shorter, genesis) as new:
        assert "up to block 19, 0 differ" in ophion(*command, f"--new={url(new)}").succeeded().out
    assert main([*command[:3]]) == 1
    assert "--compare needs --old=URL and --new=URL" in capsys.readouterr().err
    assert main([*command, "--new=http://127.0.0.1:1"]) == 1
    assert "does not answer" in capsys.readouterr().err

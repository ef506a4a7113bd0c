"""Tests `ophion proof`: export from a database and from a running node, verification, bad input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.testing.bft_chain import bft_genesis_text, sealed_blocks
from ophion.testing.node_process import NodeProcess
from tests.integration.command import ophion

BLOCKS = 12
ACCOUNT = "0x" + "99" * 20


@pytest.fixture(scope="module")
def genesis(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("proof") / "genesis.json"
    file.write_text(bft_genesis_text("qbft", 4))
    return file


@pytest.fixture(scope="module")
def data(genesis: Path) -> Path:
    """Return a database with a chain of four validators."""
    blocks, path = genesis.parent / "blocks.rlp", genesis.parent / "data"
    blocks.write_bytes(b"".join(raw for _, raw in sealed_blocks("qbft", 4, BLOCKS)))
    ophion("blocks", "import", f"--data-path={path}", f"--genesis-file={genesis}", f"--from={blocks}").succeeded()
    return path


@pytest.fixture(scope="module")
def node(genesis: Path, data: Path) -> Iterator[NodeProcess]:
    with NodeProcess(data, f"--genesis-file={genesis}", "--rpc-http-api=ETH") as running:
        yield running


def exported(to: Path, *options: str) -> bytes:
    ophion("proof", "export", f"--to={to}", "--block=9", f"--account={ACCOUNT}:0:0x10", *options).succeeded()
    return to.read_bytes()


def test_a_proof_of_the_database_is_verified(genesis: Path, data: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    exported(proof, f"--data-path={data}", f"--genesis-file={genesis}")
    shown = ophion("proof", "verify", str(proof), f"--trust={genesis}").succeeded().out
    assert "The proof holds." in shown
    assert "sealed by 3 of 4 validators:" in shown
    assert f"account {ACCOUNT} nonce=0 balance=0 wei (does not exist)" in shown
    statement = json.loads(ophion("proof", "verify", str(proof), f"--trust={genesis}", "--json").succeeded().out)
    assert statement["block"]["number"] == "0x9"
    assert len(statement["accounts"][0]["slots"]) == 2
    content = bytearray(proof.read_bytes())
    content[content.index(b'"header":"0x') + 600] ^= 1
    proof.write_bytes(content)
    result = ophion("proof", "verify", str(proof), f"--trust={genesis}")
    assert result.code == 1
    assert "does not hold" in result.err


def test_a_running_node_gives_the_same_proof(node: NodeProcess, genesis: Path, data: Path, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{node.ports['json-rpc']}"
    asked = exported(tmp_path / "asked.json", f"--rpc={url}")
    assert asked == exported(tmp_path / "stored.json", f"--data-path={data}", f"--genesis-file={genesis}")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "Name what to prove"),
        (("--tx=0x" + "11" * 32,), "is not in a block of this node"),
        (("--tx=0x" + "11" * 32, "--block=3"), "--block is for proofs without --tx"),
        (("--block=99", f"--account={ACCOUNT}"), "Block 99 cannot be proven: the node has the blocks 1 to 12"),
        (("--tx=0x11",), "expected a transaction hash of 32 bytes"),
        (("--block=3", f"--account={ACCOUNT}:x"), "with slots as numbers"),
    ],
)
def test_bad_input_is_one_error_and_no_file(
    genesis: Path, data: Path, tmp_path: Path, options: tuple[str, ...], problem: str
) -> None:
    to = tmp_path / "proof.json"
    result = ophion("proof", "export", f"--data-path={data}", f"--genesis-file={genesis}", f"--to={to}", *options)
    assert result.code != 0
    assert problem in result.err
    assert not list(tmp_path.iterdir())


def test_files_that_cannot_be_used_are_named(genesis: Path, tmp_path: Path) -> None:
    missing = ophion("proof", "verify", str(tmp_path / "none.json"), f"--trust={genesis}")
    assert "Cannot read" in missing.err
    (tmp_path / "empty.json").write_text("{}")
    assert "does not hold" in ophion("proof", "verify", str(tmp_path / "empty.json"), f"--trust={genesis}").err
    assert "Name one file" in ophion("proof", "verify", f"--trust={genesis}").err

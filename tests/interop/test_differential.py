"""Sends the same 300 requests about one chain to another client and to a node with the profile of that client. The test
lists deviations by name.

Needs GETH=path/to/geth (1.13), BESU=path/to/its/start/script (22.10 or 24.5) or GOQUORUM=path/to/its/geth (24.4).
`*` in a name stands for a block or a position.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

import pytest

from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.wait_for import wait_for
from tests.interop.besu import BESU, needs_besu
from tests.interop.differential import Requests, SharedChain, ask, differences, requests_about

GETH = os.environ.get("GETH", "")
GOQUORUM = os.environ.get("GOQUORUM", "")
START_LIMIT_S = 600.0
needs_geth = pytest.mark.skipif(not shutil.which(GETH or "-"), reason="GETH does not name a go-ethereum program")
needs_goquorum = pytest.mark.skipif(not shutil.which(GOQUORUM or "-"), reason="GOQUORUM does not name a program")

_PARAMETERS = {
    "balance without block": "the block is optional",
    "block without detail": "the second parameter is optional",
    "balance at an unknown block": "null",
    "logs from the end to the start": "an error of parameters",
    "logs of an unknown hash": "an error of its own text; Besu has an empty list",
    "raw transaction that is empty": "an error of parameters",
    "raw transaction that is no RLP": "an error of parameters",
    "call with zero": "code 3 also without data",
    "call with empty": "code 3 also without data",
    "estimate with zero": "code 3 also without data",
    "estimate with empty": "code 3 also without data",
    "call that reverts": "code 3 also without data",
    "proof *": "an absent account has the hashes of empty code and storage; keys of storage are quantities",
    "fee history of no blocks": "an error of parameters",
    "call with an invalid opcode": "the text ends before the name of the instruction; Besu has an internal error",
}
GETH_DEVIATIONS = {
    **_PARAMETERS,
    "safe block": "code -39001 of the specification",
    "finalized block": "code -39001 of the specification",
    "call at *": "code 3 also without data",
    "balance of a short address": "short addresses are padded, as in Besu",
    "balance at an unknown hash": "null, as in Besu",
    "block with a bad number": "the text of invalid parameters",
    "block number with leading zeros": "leading zeros are accepted, as in Besu",
    "call with too much value": "the text ends before the amounts",
    "estimate with too much value": "the text ends before the amounts",
    "estimate with *": "the least gas that suffices; geth stops its search within 1.5 percent",
    "call with too little gas": "the text ends before the amounts",
    "raw transaction of a poor account": "the text ends before the amounts",
    "too few parameters": "the text of invalid parameters",
    "too many parameters": "further parameters are ignored, as in Besu",
    "hash of no hexadecimal": "the text of invalid parameters",
}
"""Requests whose answers differ from geth, with what the node does instead."""
BESU_DEVIATIONS = {
    **_PARAMETERS,
    "receipts of block *": "the method is there; Besu 22 does not have it",
    "fee history to 0x0": "one block; Besu repeats block 0",
    "access list with *": "the method is there; Besu 22 does not have it",
    "estimate with *": "the least gas that suffices; Besu adds the stipend of a call",
    "estimate with too much value": "the sender's balance is checked",
    "receipts of an unknown block": "the method is there; Besu 22 does not have it",
    "listening": "this node listens",
    "peers": "this node counts peers; Besu was started without them",
}
"""Requests with a deviation between Besu 22.10.3 and `--compat=besu-21`, with what the node does instead."""

BESU_24_DEVIATIONS = {
    **BESU_DEVIATIONS,
    "block * in full": "no `yParity`, and `v` is the y parity; Besu 24 adds `yParity`, and its `v` is that of EIP-155",
    "first transaction of block *": "no `yParity`, and `v` is the y parity",
    "transaction *": "no `yParity`, and `v` is the y parity",
    "fee history to *": "no blob fees, as in Besu 22",
    "balance at an unknown hash": "null, as in Besu 22",
}
"""Requests with a deviation between Besu 24.5.4 and `--compat=besu-21`, with what the node does instead."""

GOQUORUM_DEVIATIONS = {
    **GETH_DEVIATIONS,
    "access list with *": "an answer; GoQuorum refuses a call that reverts, and its handler crashes for the others",
    "receipts of block *": "the method is there; GoQuorum does not have it",
    "fee history to *": "the method is there; GoQuorum does not have it",
    "receipts of an unknown block": "the method is there; GoQuorum does not have it",
}
"""Requests whose answers differ between GoQuorum 24.4.1 (a geth 1.10.3) and `--compat=goquorum`, with what the node
does instead.
"""


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> SharedChain:
    return SharedChain(tmp_path_factory.mktemp("chain"))


@contextmanager
def _running(command: list[str], port: int, log: Path) -> Iterator[None]:
    def answers() -> bool:
        try:
            return ask(port, "eth_chainId", []) == '"0x539"'
        except OSError:
            return False

    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            wait_for(answers, START_LIMIT_S, "the partner")
            yield
        finally:
            process.terminate()


def _compare(chain: SharedChain, path: Path, port: int, profile: str, listed: Mapping[str, str]) -> None:
    requests: Requests = requests_about(chain)
    assert len(requests) == 300
    shutil.copytree(chain.data, path / "node")
    # another node key makes this node a follower, which makes no blocks
    (path / "node" / "key").write_text("55" * 32)
    options = (f"--genesis-file={chain.genesis}", f"--compat={profile}", "--rpc-http-api=ETH,NET,WEB3")
    with NodeProcess(path / "node", *options) as node:
        assert ask(port, "eth_blockNumber", []) == ask(node.ports["json-rpc"], "eth_blockNumber", [])
        different = differences(requests, port, node.ports["json-rpc"])
    unlisted = {name: pair for name, pair in different.items() if not any(fnmatch(name, pattern) for pattern in listed)}
    print(f"{profile}: {len(requests) - len(different)} of {len(requests)} answers are equal")
    assert not unlisted, unlisted


def _geth_import(program: str, chain: SharedChain, path: Path) -> list[str]:
    """Import the chain into geth and return the first arguments of the geth command."""
    base = [program, "--datadir", str(path), "--gcmode=archive"]
    for words in (["init", str(chain.genesis)], ["import", str(chain.blocks)]):
        subprocess.run([*base, *words], check=True, capture_output=True, timeout=START_LIMIT_S)
    return base


@needs_geth
def test_answers_differ_from_geth_only_where_it_is_listed(chain: SharedChain, tmp_path: Path) -> None:
    base = _geth_import(GETH, chain, tmp_path / "geth")
    port, engine = free_ports(2)
    quiet = ["--nodiscover", "--maxpeers=0", "--port=0", "--ipcdisable", f"--authrpc.port={engine}", "--networkid=1337"]
    served = ["--http", f"--http.port={port}", "--http.api=eth,net,web3"]
    with _running([*base, *quiet, *served], port, tmp_path / "log"):
        _compare(chain, tmp_path, port, "geth-1.13", GETH_DEVIATIONS)


@needs_besu
def test_answers_differ_from_besu_only_where_it_is_listed(chain: SharedChain, tmp_path: Path) -> None:
    base = [BESU, f"--data-path={tmp_path / 'besu'}", f"--genesis-file={chain.genesis}"]
    subprocess.run(
        [*base, "blocks", "import", f"--from={chain.blocks}"], check=True, capture_output=True, timeout=START_LIMIT_S
    )
    (port,) = free_ports(1)
    quiet = ["--p2p-enabled=false", "--discovery-enabled=false", "--sync-mode=FULL"]
    served = [
        "--rpc-http-enabled",
        f"--rpc-http-port={port}",
        "--rpc-http-host=127.0.0.1",
        "--rpc-http-api=ETH,NET,WEB3",
    ]
    with _running([*base, *quiet, *served], port, tmp_path / "log"):
        is_22 = "besu/v22" in ask(port, "web3_clientVersion", [])
        _compare(chain, tmp_path, port, "besu-21", BESU_DEVIATIONS if is_22 else BESU_24_DEVIATIONS)


@needs_goquorum
def test_answers_differ_from_goquorum_only_where_it_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVATE_CONFIG", "ignore")
    (tmp_path / "chain").mkdir()
    chain = SharedChain(tmp_path / "chain", has_london=False)
    base = _geth_import(GOQUORUM, chain, tmp_path / "goquorum")
    (port,) = free_ports(1)
    quiet = ["--nodiscover", "--maxpeers=0", "--port=0", "--ipcdisable", "--networkid=1337"]
    served = ["--http", f"--http.port={port}", "--http.api=eth,net,web3"]
    with _running([*base, *quiet, *served], port, tmp_path / "log"):
        _compare(chain, tmp_path, port, "goquorum", GOQUORUM_DEVIATIONS)

"""A node that stores only recent states answers requests about older states with errors, and kills cause no damage."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.pruning import PruningRounds
from ophion.native.privacy import PrivateLedger
from ophion.node.datadir import DataDirectory
from ophion.testing.node_process import MINING, NodeProcess, RpcFailure
from ophion.testing.private_transactions import NUMBER_CONTRACT, PrivateClient
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.conftest import shared_path
from tests.fuzz.small_chain import import_arguments
from tests.integration.command import OPHION, environment, ophion

HISTORY = "--state-history=16"
APIS = "--rpc-http-api=ETH,DEBUG,TRACE"
RICH = DEV_KEYS[1]
ADDRESS = "0x" + RICH.address.hex()
CALL = {"from": ADDRESS, "to": ADDRESS, "value": "0x1"}


def grow(node: NodeProcess, first: int, count: int) -> None:
    """Make blocks with one transfer to a new account each."""
    for nonce in range(first, first + count):
        node.receipt(node.send(legacy_transaction(RICH, nonce, to=nonce.to_bytes(4, "big") * 5, value=1)))


def answer(node: NodeProcess, method: str, *params: Any) -> Any:
    try:
        return node.rpc(method, *params)
    except RpcFailure as failure:
        return failure.code, failure.message


def test_states_that_are_not_kept_are_answered_like_blocks_that_are_not_there(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *MINING, HISTORY, APIS) as node:
        grow(node, 0, 40)
        old, recent = hex(10), hex(40 - 16)
        trace = node.rpc("eth_getBlockByNumber", hex(5), False)["transactions"][0]
        for method, params in (
            ("eth_getBalance", [ADDRESS]),
            ("eth_getTransactionCount", [ADDRESS]),
            ("eth_getCode", [ADDRESS]),
            ("eth_getStorageAt", [ADDRESS, "0x0"]),
            ("eth_call", [CALL]),
        ):
            assert answer(node, method, *params, old) is None, method
            assert answer(node, method, *params, recent) is not None, method
            assert answer(node, method, *params, "latest") is not None, method
            assert answer(node, method, *params, "earliest") is not None, method
        assert answer(node, "eth_getProof", ADDRESS, [], old) == (-32000, "World state unavailable")
        assert answer(node, "eth_getProof", ADDRESS, [], recent)["nonce"] == hex(24)
        assert answer(node, "debug_traceBlockByNumber", old) is None
        assert answer(node, "debug_traceTransaction", trace) is None
        assert answer(node, "debug_traceBlockByNumber", hex(39))
        assert answer(node, "trace_block", hex(39))
        # pruning deletes old states, but no blocks
        assert node.rpc("eth_getBlockByNumber", old, True)["number"] == old
        assert node.rpc("eth_getTransactionReceipt", trace)["status"] == "0x1"
        assert node.stop() == 0
    ophion("storage", "check", f"--data-path={tmp_path / 'data'}").succeeded()


def test_a_whole_history_is_dropped_when_it_is_asked_for_later(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *MINING) as node:
        grow(node, 0, 60)
        assert node.stop() == 0
    with NodeProcess(tmp_path / "data", *MINING, HISTORY, APIS) as node:
        grow(node, 60, 1)
        wait_for(lambda: "pruned old states states=" in node.output())
        assert "pruned old states states=44 " in node.output()
        assert node.rpc("debug_metrics")["pruner"]["states_dropped_total"] == 44
        grow(node, 61, 3)
        assert node.stop() == 0
    ophion("storage", "check", f"--data-path={tmp_path / 'data'}").succeeded()
    # without the option --state-history, pruned states stay missing and the node stores all later states
    with NodeProcess(tmp_path / "data", *MINING) as node:
        grow(node, 64, 20)
        assert node.rpc("eth_getBalance", ADDRESS, hex(5)) is None
        assert node.rpc("eth_getBalance", ADDRESS, hex(64)) is not None


def test_killing_a_node_that_drops_states_damages_nothing(tmp_path: Path) -> None:
    order, nonce = random.Random(7), 0
    for _ in range(4):
        with NodeProcess(tmp_path / "data", *MINING, HISTORY) as node:
            # the first block after a start begins a pruning round
            grow(node, nonce, 25)
            nonce += 25
            time.sleep(order.random() * 0.02)
            node.kill()
        assert "No damage found" in ophion("storage", "check", f"--data-path={tmp_path / 'data'}").succeeded().out


@pytest.mark.slow
def test_killing_an_import_that_drops_states_damages_nothing(tmp_path: Path) -> None:
    chain = shared_path("bench", "clique-30k")
    arguments = [*import_arguments(tmp_path / "data", chain / "blocks.rlp", chain / "genesis.json"), HISTORY]
    database = tmp_path / "data" / "database" / "data.mdb"
    for megabytes in (4, 12):
        running = subprocess.Popen(
            [*OPHION, *arguments], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # the file size shows the progress of the import, so kill the import at a certain size
        wait_for(lambda least=megabytes << 20: database.exists() and database.stat().st_size > least)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        ophion("storage", "check", f"--data-path={tmp_path / 'data'}").succeeded()
    ophion(*arguments).succeeded()
    ophion("storage", "check", f"--data-path={tmp_path / 'data'}").succeeded()


def test_too_short_a_history_is_refused(tmp_path: Path) -> None:
    ophion("--state-history=15", f"--data-path={tmp_path / 'data'}").failed("15 is less than 16")


BERLIN = (*MINING, "--dev-fork=berlin", "--min-gas-price=0")
PRIVATE = (*BERLIN, "--privacy-enabled", "--rpc-http-api=ETH,EEA,PRIV")


def with_private_state(data: Path) -> bytes:
    """Make forty blocks, the first with a private transaction. Returns the enclave key."""
    with NodeProcess(data, *PRIVATE) as node:
        client = PrivateClient(node, DEV_KEYS[0], 2018)
        assert client.receipt(client.send(NUMBER_CONTRACT))["status"] == "0x1"
        grow(node, 0, 39)
        assert node.stop() == 0
    return client.enclave_key


def test_states_under_private_ones_are_not_dropped(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with_private_state(data)
    ophion(*BERLIN, HISTORY, f"--data-path={data}", "--p2p-enabled=false").failed("holds private states")
    block = tmp_path / "chain.rlp"
    ophion("blocks", "export", f"--to={block}", f"--data-path={data}").succeeded()
    arguments = ("blocks", "import", f"--from={block}", "--network=dev", "--dev-fork=berlin", f"--data-path={data}")
    ophion(*arguments, HISTORY).failed("holds private states")
    with NodeProcess(data, *PRIVATE) as node:
        assert node.rpc("priv_status")["states"]
        assert node.stop() == 0
    # after the private states are deleted, pruning is possible
    ophion("privacy", "rebuild", f"--data-path={data}").succeeded()
    with NodeProcess(data, *BERLIN, HISTORY) as node:
        grow(node, 39, 1)
        wait_for(lambda: "pruned old states states=24" in node.output())
        assert node.stop() == 0


def test_private_states_are_not_begun_nor_forgotten_where_states_were_dropped(tmp_path: Path) -> None:
    data = tmp_path / "data"
    enclave_key = with_private_state(data)
    with DataDirectory.open_existing(data) as directory:
        # prune like earlier versions, which did not check for private states
        PruningRounds(directory.store(), 16).catch_up(40)
    # the command refuses to delete private states that the node cannot rebuild
    ophion("privacy", "rebuild", f"--data-path={data}").failed("Nothing was changed", "--state-history")
    refused = ophion(*PRIVATE, f"--data-path={data}", "--p2p-enabled=false")
    refused.failed("--privacy-enabled needs the state of every block", "--state-history", "ophion blocks export")
    # the public chain still works, and the private states are readable
    with NodeProcess(data, *BERLIN, HISTORY) as node:
        assert node.height == 40
        assert node.stop() == 0
    with DataDirectory.open_existing(data) as directory:
        followed = PrivateLedger(directory.store(read_only=True)).followed()
    assert followed is not None
    # follow the hint in the error message: export the chain and import it into a new node
    ophion("blocks", "export", f"--to={tmp_path / 'chain.rlp'}", f"--data-path={data}").succeeded()
    new = tmp_path / "new"
    arguments = ("--network=dev", "--dev-fork=berlin", f"--data-path={new}")
    ophion("blocks", "import", f"--from={tmp_path / 'chain.rlp'}", *arguments).succeeded()
    shutil.copytree(data / "privacy", new / "privacy")
    with NodeProcess(new, *PRIVATE) as node:
        assert node.height == 40
        assert PrivateClient(node, DEV_KEYS[0], 2018).enclave_key == enclave_key
        assert node.stop() == 0

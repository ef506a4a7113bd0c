"""Proof of authority with real processes: networks of one node make blocks on time, survive a kill and obey RPC
methods.
"""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ophion.native.crypto import PrivateKey
from ophion.node.node_key_file import load_key
from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, fee_transaction
from ophion.testing.wait_for import wait_for
from tests.conftest import ROOT
from tests.integration.command import ophion

EXAMPLES = ROOT / "examples"
APIS = "--rpc-http-api=ETH,NET,CLIQUE,IBFT,QBFT,MINER,TXPOOL"
OTHER = "0x" + "ab" * 20
MAX_LATE_S = 0.5
"""Maximum delay of a block. Idle machines stay below 0.05 s (see bench/poa_blocks.py); machines that run other tests
need more.
"""


def example(tmp_path: Path, engine: str) -> tuple[str, ...]:
    """Return the options of an example. QBFT uses the genesis of IBFT 2.0 with another engine name and extra data."""
    folder = EXAMPLES / ("clique" if engine == "clique" else "ibft2")
    genesis = folder / "genesis.json"
    if engine == "qbft":
        values = json.loads(genesis.read_text())
        values["config"]["qbft"] = values["config"].pop("ibft2")
        address = load_key(folder / "key.priv").address.hex()
        values["extraData"] = "0xf83aa0" + "00" * 32 + "d594" + address + "c080c0"
        genesis = tmp_path / "qbft.json"
        genesis.write_text(json.dumps(values))
    return (f"--genesis-file={genesis}", f"--node-private-key-file={folder / 'key.priv'}", APIS)


def me(engine: str) -> PrivateKey:
    return load_key(EXAMPLES / ("clique" if engine == "clique" else "ibft2") / "key.priv")


def wait_for_block(node: NodeProcess, number: int, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while node.height < number:
        assert time.monotonic() < deadline, node.output()[-2000:]
        time.sleep(0.005)


def block(node: NodeProcess, number: int) -> dict[str, Any]:
    found: dict[str, Any] = node.rpc("eth_getBlockByNumber", hex(number), False)
    return found


def next_blocks_are_on_time(node: NodeProcess) -> bool:
    """Return whether the next three blocks are one second apart and on time.

    Other load can make a block late, so callers may repeat the check.
    """
    head = node.height
    times = [int(block(node, head)["timestamp"], 16)]
    for number in range(head + 1, head + 4):
        wait_for_block(node, number)
        times.append(int(block(node, number)["timestamp"], 16))
        if time.time() - times[-1] >= MAX_LATE_S or times[-1] - times[-2] != 1:
            return False
    return True


ENGINES = pytest.mark.parametrize("engine", ["clique", "ibft2", "qbft"])


@ENGINES
def test_a_network_of_one_makes_blocks_on_time_and_takes_transactions(tmp_path: Path, engine: str) -> None:
    with NodeProcess(tmp_path / "data", *example(tmp_path, engine)) as node:
        assert node.rpc("eth_mining") is True
        assert node.rpc("eth_coinbase") == "0x" + me(engine).address.hex()
        wait_for_block(node, 1)
        hash = node.send(fee_transaction(DEV_KEYS[0], 0, max_fee=10**11, tip=10**9))
        wait_for(lambda: next_blocks_are_on_time(node), 180, "three blocks in a row that are on time")
        assert node.receipt(hash)["status"] == "0x1"
        assert node.rpc("eth_getBalance", "0x" + me(engine).address.hex(), "latest") == hex(21_000 * 10**9)
        assert node.stop() == 0


@ENGINES
def test_x_04_a_node_killed_while_it_writes_a_block_goes_on_from_a_consistent_head(tmp_path: Path, engine: str) -> None:
    """Kill the node around the time of a block. Every block that was visible must still be part of the chain."""
    node = NodeProcess(tmp_path / "data", *example(tmp_path, engine))
    seen: dict[int, str] = {}
    sent: list[str] = []
    for wait_s in (0.003, 0.010):
        with node:
            for number, hash in seen.items():
                assert block(node, number)["hash"] == hash
            first = node.height
            wait_for_block(node, first + 1)
            nonce = int(node.rpc("eth_getTransactionCount", "0x" + DEV_KEYS[0].address.hex(), "latest"), 16)
            sent = [
                node.send(fee_transaction(DEV_KEYS[0], nonce + step, max_fee=10**11, tip=10**9)) for step in range(20)
            ]
            head = node.height
            seen |= {number: block(node, number)["hash"] for number in range(head + 1)}
            due = int(block(node, head)["timestamp"], 16) + 1
            time.sleep(max(0.0, due + wait_s - time.time()))
            node.kill()
    with node:
        for hash in sent:
            assert node.receipt(hash)["status"] == "0x1"
        head = node.height
        chain = [block(node, number) for number in range(head + 1)]
        assert {number: chain[number]["hash"] for number in seen} == seen
        assert all(after["parentHash"] == before["hash"] for before, after in pairwise(chain))
        assert node.stop() == 0
    ophion("storage", "check", f"--data-path={tmp_path / 'data'}").succeeded()


@ENGINES
def test_miner_stop_and_start_are_obeyed(tmp_path: Path, engine: str) -> None:
    with NodeProcess(tmp_path / "data", *example(tmp_path, engine)) as node:
        wait_for_block(node, 1)
        assert node.rpc("miner_stop") is True
        assert node.rpc("eth_mining") is False
        head = node.height
        time.sleep(2.1)
        assert node.height <= head + 1, "one that is being written is finished"
        assert node.rpc("miner_start") is True
        wait_for_block(node, head + 3)


@pytest.mark.parametrize("engine", ["clique", "ibft2", "qbft", "contract"])
def test_what_a_node_has_made_another_one_imports(tmp_path: Path, engine: str) -> None:
    options = contract_network(tmp_path) if engine == "contract" else example(tmp_path, engine)
    with NodeProcess(tmp_path / "data", *options) as node:
        node.receipt(node.send(fee_transaction(DEV_KEYS[0], 0, max_fee=10**11, tip=10**9)))
        wait_for_block(node, 4)
        assert node.stop() == 0
    blocks = tmp_path / "blocks.rlp"
    ophion("blocks", "export", f"--to={blocks}", f"--data-path={tmp_path / 'data'}", options[0]).succeeded()
    done = ophion("blocks", "import", f"--from={blocks}", f"--data-path={tmp_path / 'other'}", options[0]).succeeded()
    assert "with 1 transactions" in done.out
    exported = blocks.read_bytes()
    ophion("blocks", "export", f"--to={blocks}2", f"--data-path={tmp_path / 'other'}", options[0]).succeeded()
    assert Path(f"{blocks}2").read_bytes() == exported


def contract_network(tmp_path: Path) -> tuple[str, ...]:
    """Write a QBFT network whose only validator is in slot 0 of a contract."""
    genesis = json.loads((EXAMPLES / "ibft2" / "genesis.json").read_text())
    contract = "cc" * 20
    parameters = genesis["config"].pop("ibft2")
    genesis["config"]["qbft"] = {**parameters, "validatorContractAddress": "0x" + contract}
    genesis["extraData"] = "0xe5a0" + "00" * 32 + "c0c080c0"
    genesis["alloc"][contract] = {
        "balance": "0x0",
        "code": "0x6020600052600160205260005460405260606000f3",
        "storage": {"0x0": "0x" + me("qbft").address.hex()},
    }
    (tmp_path / "contract.json").write_text(json.dumps(genesis))
    return (
        f"--genesis-file={tmp_path / 'contract.json'}",
        f"--node-private-key-file={EXAMPLES / 'ibft2' / 'key.priv'}",
        APIS,
    )


def test_a_lone_clique_signer_adds_another_and_has_to_wait_for_it(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", *example(tmp_path, "clique")) as node:
        wait_for_block(node, 1)
        assert node.rpc("clique_propose", OTHER, True) is True
        wait_for(lambda: OTHER in node.rpc("clique_getSigners"))
        voted = node.height
        assert block(node, voted)["miner"] == OTHER
        assert block(node, voted)["nonce"] == "0xffffffffffffffff"
        assert node.rpc("clique_proposals") == {OTHER: True}
        time.sleep(2.2)
        assert node.height == voted, "with two signers nobody signs twice in a row"


@pytest.mark.parametrize("prefix", ["ibft", "qbft"])
def test_a_lone_validator_adds_another_and_the_status_says_what_is_missing(tmp_path: Path, prefix: str) -> None:
    engine = {"ibft": "ibft2", "qbft": "qbft"}[prefix]
    with NodeProcess(tmp_path / "data", *example(tmp_path, engine)) as node:
        wait_for_block(node, 1)
        wait_for(lambda: "The next block is due" in node.rpc(f"{prefix}_getStatus")["explanation"][0])
        assert node.rpc(f"{prefix}_proposeValidatorVote", OTHER, True) is True
        # the validator waits for the heights of its peers, and then reports that no quorum is reachable
        wait_for(lambda: node.rpc(f"{prefix}_getStatus")["quorumReachable"] is False)
        status = node.rpc(f"{prefix}_getStatus")
        assert status["disconnected"] == [OTHER]
        assert status["quorumReachable"] is False
        assert "No quorum: 2 of 2 validators are needed and 1 are connected." in status["explanation"][0]
        assert node.rpc(f"{prefix}_getPendingVotes") == {OTHER: True}
        assert node.rpc(f"{prefix}_getSignerMetrics", "0x1", "0x2")[0]["proposedBlockCount"] == "0x1"


def test_examples_are_what_the_operator_command_makes_of_their_description() -> None:
    for name in ("clique", "ibft2"):
        described = json.loads((EXAMPLES / name / "network.json").read_text())["genesis"]
        genesis = json.loads((EXAMPLES / name / "genesis.json").read_text())
        assert load_key(EXAMPLES / name / "key.priv").address.hex() in genesis.pop("extraData")
        assert genesis == described

"""Tests ibft_* and qbft_*."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.chainspec.genesis import Genesis
from ophion.node.config import NodeConfig
from ophion.testing.signing import DEV_KEYS
from ophion.testing.wait_for import until
from tests.unit.producer.authority import KEYS, authority_genesis
from tests.unit.rpc.interface import Interface, open_interface

ME = DEV_KEYS[0].address
"""Address of the only validator in these tests."""
OTHER = "0x" + "33" * 20
BOTH = pytest.mark.parametrize("prefix", ["ibft", "qbft"])


def genesis(prefix: str, *members: bytes, **parameters: Any) -> Genesis:
    engine = {"ibft": "ibft2", "qbft": "qbft"}[prefix]
    return authority_genesis(
        engine, sorted(members), None, **{"blockperiodseconds": 2, "requesttimeoutseconds": 4, **parameters}
    )


@pytest.fixture
def node(tmp_path: Path, prefix: str) -> Iterator[Interface]:
    with open_interface(tmp_path, genesis(prefix, ME), NodeConfig()) as opened:
        yield opened


def make_blocks(node: Interface, count: int) -> None:
    """Make blocks of the only validator, advancing the clock."""

    async def story() -> None:
        core, mining = node.node, node.node.mining
        service = asyncio.create_task(mining.run(lambda: None))
        for number in range(core.queries.head_number + 1, core.queries.head_number + 1 + count):
            core.clock.advance(2)
            mining.start()
            await until(lambda number=number: core.queries.head_number == number)  # type: ignore[misc]
            mining.stop()
            await asyncio.sleep(0.001)
        service.cancel()
        await asyncio.wait({service})

    node.run(story())


@pytest.mark.parametrize(("prefix", "is_sorted"), [("ibft", False), ("qbft", True)])
def test_validators_of_a_genesis_block_in_another_order(tmp_path: Path, prefix: str, is_sorted: bool) -> None:
    engine, listed = {"ibft": "ibft2", "qbft": "qbft"}[prefix], sorted((ME, bytes([7] * 20)), reverse=True)
    with open_interface(tmp_path, authority_genesis(engine, listed, None), NodeConfig()) as node:
        block = node.ask("eth_getBlockByNumber", "0x0", False)["hash"]
        shown = ["0x" + address.hex() for address in (sorted(listed) if is_sorted else listed)]
        assert node.ask(f"{prefix}_getValidatorsByBlockNumber", "0x0") == shown
        assert node.ask(f"{prefix}_getValidatorsByBlockHash", block) == shown


@BOTH
def test_validators_of_a_block(node: Interface, prefix: str) -> None:
    mine = ["0x" + ME.hex()]
    assert node.ask(f"{prefix}_getValidatorsByBlockNumber", "latest") == mine
    assert node.ask(f"{prefix}_getValidatorsByBlockNumber", "pending") == mine
    assert node.ask(f"{prefix}_getValidatorsByBlockNumber", "0x0") == mine
    assert node.ask(f"{prefix}_getValidatorsByBlockNumber", "0x99") is None
    assert node.error(f"{prefix}_getValidatorsByBlockNumber") == (-32602, "Invalid params")
    block = node.ask("eth_getBlockByNumber", "0x0", False)["hash"]
    assert node.ask(f"{prefix}_getValidatorsByBlockHash", block) == mine
    assert node.ask(f"{prefix}_getValidatorsByBlockHash", "0x" + "ab" * 32) is None
    assert node.error(f"{prefix}_getValidatorsByBlockHash", "0x12")[0] == -32602


@BOTH
def test_votes_stay_until_they_are_discarded(node: Interface, prefix: str) -> None:
    assert node.ask(f"{prefix}_getPendingVotes") == {}
    assert node.ask(f"{prefix}_proposeValidatorVote", OTHER, True) is True
    assert node.ask(f"{prefix}_proposeValidatorVote", "44" * 20, False) is True
    assert node.ask(f"{prefix}_proposeValidatorVote", OTHER, False) is True
    assert node.ask(f"{prefix}_proposeValidatorVote", "0x" + "00" * 20, True) is True
    votes = {OTHER: False, "0x" + "44" * 20: False, "0x" + "00" * 20: True}
    assert node.ask(f"{prefix}_getPendingVotes") == votes
    assert node.ask(f"{prefix}_discardValidatorVote", OTHER) is True
    assert node.ask(f"{prefix}_discardValidatorVote", OTHER) is True
    assert OTHER not in node.ask(f"{prefix}_getPendingVotes")
    assert node.error(f"{prefix}_proposeValidatorVote", OTHER)[0] == -32602
    assert node.error(f"{prefix}_proposeValidatorVote", "0x12zz", True)[0] == -32602


@BOTH
def test_the_set_of_a_block_changes_one_block_after_the_deciding_vote(node: Interface, prefix: str) -> None:
    make_blocks(node, 1)
    node.ask(f"{prefix}_proposeValidatorVote", "0x" + KEYS[0].address.hex(), True)
    make_blocks(node, 1)
    assert node.ask(f"{prefix}_getValidatorsByBlockNumber", "0x2") == ["0x" + ME.hex()]
    both = sorted(["0x" + ME.hex(), "0x" + KEYS[0].address.hex()])
    pending = node.ask(f"{prefix}_getValidatorsByBlockNumber", "pending")
    assert pending == (both if prefix == "qbft" else ["0x" + ME.hex()])


@BOTH
def test_x_05_metrics_count_blocks_by_proposer(node: Interface, prefix: str) -> None:
    assert node.error(f"{prefix}_getSignerMetrics") == (-32602, "Invalid params")
    make_blocks(node, 4)
    mine = {"address": "0x" + ME.hex(), "proposedBlockCount": "0x3", "lastProposedBlockNumber": "0x3"}
    nobody = {"address": "0x" + "00" * 20, "proposedBlockCount": "0x1", "lastProposedBlockNumber": "0x0"}
    assert sorted(node.ask(f"{prefix}_getSignerMetrics"), key=lambda one: one["address"]) == [nobody, mine]
    assert node.ask(f"{prefix}_getSignerMetrics", "0x1") == [mine]
    assert node.ask(f"{prefix}_getSignerMetrics", "1", "latest") == [mine]
    assert node.ask(f"{prefix}_getSignerMetrics", "1", "9999") == [mine]
    assert node.error(f"{prefix}_getSignerMetrics", "2", "2")[0] == -32602
    assert node.error(f"{prefix}_getSignerMetrics", "latest")[0] == -32602


@BOTH
def test_the_status_says_what_consensus_waits_for(node: Interface, prefix: str) -> None:
    status = node.ask(f"{prefix}_getStatus")
    assert (status["protocol"], status["phase"]) == ({"ibft": "ibft2", "qbft": "qbft"}[prefix], "stopped")
    make_blocks(node, 1)
    assert node.ask(f"{prefix}_getStatus")["explanation"]


def test_only_qbft_returns_its_request_timeout(tmp_path: Path) -> None:
    with open_interface(tmp_path, genesis("qbft", ME), NodeConfig()) as node:
        assert node.ask("qbft_getRequestTimeoutSeconds") == 4


def test_q_06_in_contract_mode_there_are_no_votes(tmp_path: Path) -> None:
    contract = "0x" + "cc" * 20
    with open_interface(tmp_path, genesis("qbft", validatorcontractaddress=contract), NodeConfig()) as node:
        for name, params in (
            ("qbft_proposeValidatorVote", (OTHER, True)),
            ("qbft_discardValidatorVote", (OTHER,)),
            ("qbft_getPendingVotes", ()),
        ):
            assert node.error(name, *params) == (-32604, "Method not enabled")


@BOTH
def test_each_network_has_the_methods_of_its_own_engine(node: Interface, prefix: str) -> None:
    other = {"ibft": "qbft", "qbft": "ibft"}[prefix]
    for name in ("getPendingVotes", "getStatus", "getSignerMetrics"):
        assert node.error(f"{other}_{name}") == (-32604, "Method not enabled")
    assert node.error("clique_proposals") == (-32604, "Method not enabled")


@BOTH
def test_the_node_itself_makes_the_blocks(node: Interface, prefix: str) -> None:
    assert node.ask("eth_coinbase") == "0x" + ME.hex()
    assert node.error("miner_setCoinbase", OTHER) == (-32600, "Invalid Request")
    assert node.ask("miner_start") is True
    assert node.ask("eth_mining") is True
    assert node.ask("miner_stop") is True
    assert node.ask("eth_mining") is False

"""Tests clique_*."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.chainspec.genesis import parse_genesis
from ophion.node.config import NodeConfig
from tests.conftest import shared_path
from tests.unit.rpc.interface import Interface, import_chain, open_interface

SIGNERS = ["0x" + "11" * 20, "0x" + "22" * 20]
GENESIS = """{
    "config": {"chainId": 77, "constantinopleFixBlock": 0, "clique": {"blockPeriodSeconds": 1, "epochLength": 30000}},
    "difficulty": "0x1", "gasLimit": "0x1000000", "alloc": {},
    "extraData": "0x%s"
}""" % ("00" * 32 + "11" * 20 + "22" * 20 + "00" * 65)


@pytest.fixture
def clique(tmp_path: Path) -> Iterator[Interface]:
    with open_interface(tmp_path, parse_genesis(GENESIS), NodeConfig()) as opened:
        yield opened


def test_signers_of_a_block(clique: Interface) -> None:
    assert clique.ask("clique_getSigners") == SIGNERS
    assert clique.ask("clique_getSigners", "latest") == SIGNERS
    genesis = clique.ask("eth_getBlockByNumber", "0x0")["hash"]
    assert clique.ask("clique_getSignersAtHash", genesis) == SIGNERS
    assert clique.error("clique_getSigners", "0x5") == (-32603, "Internal error")
    assert clique.error("clique_getSignersAtHash", "0x" + "ab" * 32) == (-32603, "Internal error")


def test_proposals_stay_until_they_are_discarded(clique: Interface) -> None:
    assert clique.ask("clique_proposals") == {}
    assert clique.ask("clique_propose", "0x" + "33" * 20, True) is True
    assert clique.ask("clique_propose", "0x" + "44" * 20, False) is True
    assert clique.ask("clique_propose", "0x" + "33" * 20, False) is True
    assert clique.ask("clique_proposals") == {"0x" + "33" * 20: False, "0x" + "44" * 20: False}
    assert clique.ask("clique_discard", "0x" + "33" * 20) is True
    assert clique.ask("clique_discard", "0x" + "55" * 20) is True
    assert clique.ask("clique_proposals") == {"0x" + "44" * 20: False}
    assert clique.error("clique_propose", "0x0", True) == (-32600, "Invalid Request")
    assert clique.error("clique_propose", "0x1")[0] == -32602


def test_metrics_need_a_range(clique: Interface) -> None:
    assert clique.error("clique_getSignerMetrics") == (-32602, "Invalid params")


def test_a_node_of_another_consensus_has_no_such_methods(dev: Interface) -> None:
    for name in ("clique_getSigners", "clique_proposals", "clique_getSignerMetrics"):
        assert dev.error(name) == (-32604, "Method not enabled")


def test_x_05_metrics_count_blocks_by_signer_on_an_imported_chain(tmp_path: Path) -> None:
    folder = shared_path("bench", "clique-30k")
    genesis = import_chain(tmp_path, folder / "genesis.json", folder / "blocks.rlp")
    with open_interface(tmp_path, genesis, NodeConfig()) as node:
        head = int(node.ask("eth_blockNumber"), 16)
        (signer,) = node.ask("clique_getSigners", "latest")
        metrics = node.ask("clique_getSignerMetrics", "0x1", "latest")
        assert metrics == [
            {"address": signer, "proposedBlockCount": hex(head - 1), "lastProposedBlockNumber": hex(head - 1)}
        ]
        assert node.ask("clique_getSignerMetrics", "earliest")[0]["address"] == "0x" + "00" * 20
        assert len(node.ask("clique_getSignerMetrics", "5", 10**6)) == 1
        assert node.error("clique_getSignerMetrics", "10", "10")[0] == -32602
        assert node.error("clique_getSignerMetrics", "-1")[0] == -32602

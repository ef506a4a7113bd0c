"""Tests miner_* and block production methods of eth_*."""

from __future__ import annotations

import pytest

from ophion.native.ethash import ethash_search
from tests.unit.rpc.interface import Interface


def test_the_coinbase_can_be_asked_and_set(dev: Interface, sample: Interface) -> None:
    assert dev.ask("eth_coinbase") == "0xfe3b557e8fb62b89f4916b721be55ceb828dbd73"
    assert dev.ask("miner_setCoinbase", "0x1") is True
    assert dev.ask("miner_setEtherbase", "0x2") is True
    assert dev.ask("eth_coinbase") == "0x" + "00" * 19 + "02"
    assert sample.error("eth_coinbase") == (-32000, "Coinbase must be explicitly specified")
    assert sample.error("miner_start") == (-32010, "Coinbase not set. Unable to start mining without a coinbase")


def test_mining_starts_and_stops_as_often_as_one_likes(dev: Interface) -> None:
    assert dev.ask("eth_mining") is False
    for name, is_mining in (("miner_start", True), ("miner_start", True), ("miner_stop", False), ("miner_stop", False)):
        assert dev.ask(name) is True
        assert dev.ask("eth_mining") is is_mining


def test_settings_are_read_back_as_they_were_set(dev: Interface) -> None:
    for getter, setter, value in (
        ("miner_getMinGasPrice", "miner_setMinGasPrice", "0x7"),
        ("miner_getMinPriorityFee", "miner_setMinPriorityFee", "0x8"),
        ("miner_getExtraData", "miner_setExtraData", "0xabcd"),
    ):
        assert dev.ask(setter, value) is True
        assert dev.ask(getter) == value
    assert dev.ask("miner_changeTargetGasLimit", "0x1c9c380") is True
    assert dev.node.mining.target_gas_limit == 30_000_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("miner_setMinGasPrice", "-1"),
        ("miner_setMinGasPrice", hex(2**96)),
        ("miner_setMinPriorityFee", hex(2**256 - 1)),
        ("miner_setMinPriorityFee", None),
        ("miner_setExtraData", "0x" + "00" * 33),
        ("miner_changeTargetGasLimit", "0x1"),
        ("miner_setCoinbase", "foo"),
    ],
)
def test_bad_settings_are_refused(dev: Interface, name: str, value: object) -> None:
    assert dev.error(name, value) == (-32602, "Invalid params")


def test_an_external_miner_can_find_a_block(dev: Interface) -> None:
    assert dev.error("eth_getWork") == (-32000, "No mining work available yet")
    dev.ask("miner_start")
    seal_hash, seed_hash, target = dev.ask("eth_getWork")
    assert seed_hash == "0x" + "00" * 32
    assert dev.ask("eth_submitWork", "0x0000000000000001", seal_hash, "0x" + "ab" * 32) is False
    assert dev.ask("eth_submitWork", "0x0000000000000001", "0x" + "ab" * 32, "0x" + "ab" * 32) is False
    difficulty = 2**256 // int(target, 16)
    found = ethash_search(bytes.fromhex(seal_hash[2:]), 1, difficulty, 0, 1_000_000, 1)
    assert found is not None
    nonce, mix_hash = found
    assert dev.ask("eth_submitWork", f"0x{nonce:016x}", seal_hash, "0x" + mix_hash.hex()) is True
    assert dev.ask("eth_blockNumber") == "0x1"
    assert dev.error("eth_submitWork", "0x01", seal_hash, seal_hash)[0] == -32602


def test_external_miners_may_report_their_speed(dev: Interface) -> None:
    assert dev.ask("eth_hashrate") == "0x0"
    assert dev.ask("eth_submitHashrate", "0x12b", "0x" + "11" * 32) is True
    assert dev.ask("eth_hashrate") == "0x12b"
    assert dev.error("eth_submitHashrate", "0x1", "0x11")[0] == -32602

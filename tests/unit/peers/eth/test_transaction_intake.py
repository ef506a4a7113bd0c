"""Tests the shared queue of transactions from unknown peers that wait for the pool."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from ophion.native.crypto import PrivateKey
from ophion.peers.eth.messages import Code
from ophion.peers.eth.response_validation import wrapped
from ophion.peers.eth.transaction_intake import MAX_BYTES, IntakeShare, TransactionIntake
from ophion.pool.events import Origin
from ophion.primitives import rlp
from ophion.testing.eth_node import EthNode
from ophion.testing.links import connect
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.peers.eth.scenarios import run_nodes

KEYS = [PrivateKey(bytes([number]) * 32) for number in range(61, 64)]


class Batches:
    """A fake intake with `left` batches to submit."""

    def __init__(self, name: str, share: IntakeShare, log: list[str], left: int) -> None:
        self.name, self.share, self.log, self.left = name, share, log, left

    def submit(self) -> None:
        if self.left and self.share.enter(cast(TransactionIntake, self)):
            self.left -= 1
            self.log.append(self.name)

    def answered(self) -> None:
        self.share.leave()
        self.submit()


def test_unknown_peers_share_the_pool_fairly() -> None:
    share, log = IntakeShare(max_batches=1), list[str]()
    peers = {name: Batches(name, share, log, 2) for name in "abc"}
    for peer in peers.values():
        peer.submit()
    while len(log) < 6:
        peers[log[-1]].answered()
    assert log == ["a", "b", "c", "a", "b", "c"]


def test_an_unused_time_slice_goes_to_the_next_peer() -> None:
    share, log = IntakeShare(max_batches=1), list[str]()
    one, gone, other = Batches("one", share, log, 1), Batches("gone", share, log, 1), Batches("other", share, log, 1)
    for peer in (one, gone, other):
        peer.submit()
    gone.left = 0
    one.answered()
    assert log == ["one", "other"]


def test_unknown_peers_share_the_bytes_that_wait() -> None:
    share = IntakeShare(max_bytes=100)
    assert share.has_space(1000), "the first message always has space"
    share.held = 60
    assert share.has_space(40)
    assert not share.has_space(41)


def test_a_member_has_space_when_unknown_peers_have_used_theirs(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode, third: EthNode) -> None:
        unknown, _ = connect(one.eth, other.eth)
        member, _ = connect(one.eth, third.eth)
        await asyncio.sleep(1)
        one.eth.transactions._unknown_share.held = 32 * MAX_BYTES
        raws = [legacy_transaction(DEV_KEYS[0], nonce=nonce) for nonce in range(2)]
        unknown.deliver(Code.TRANSACTIONS, rlp.list_of([wrapped(raws[1])]))
        await asyncio.sleep(1)
        assert len(one.node.pool) == 0
        for peer in one.eth.peers:
            peer.peer.is_static = True
        member.deliver(Code.TRANSACTIONS, rlp.list_of([wrapped(raws[0])]))
        await asyncio.sleep(1)
        assert len(one.node.pool) == 1

    run_nodes(tmp_path, 3, scenario)


def test_a_transaction_in_the_queue_of_an_unknown_peer_is_taken_from_a_member(tmp_path: Path) -> None:
    """An unknown peer could otherwise delay a transaction by sending it first, behind many others."""

    async def scenario(one: EthNode, other: EthNode, third: EthNode) -> None:
        unknown, _ = connect(one.eth, other.eth, (KEYS[0], KEYS[1]))
        member, _ = connect(one.eth, third.eth, (KEYS[0], KEYS[2]))
        await asyncio.sleep(1)
        by_member = one.eth.peers.by_address(KEYS[2].address)
        assert by_member is not None
        by_member.peer.is_static = True
        share = one.eth.transactions._unknown_share
        free, share._free = share._free, 0
        sent = [legacy_transaction(DEV_KEYS[0], nonce=nonce) for nonce in range(3)]
        message = rlp.list_of([wrapped(raw) for raw in sent])
        for _ in range(2):
            unknown.deliver(Code.TRANSACTIONS, message)
        await asyncio.sleep(1)
        assert len(one.node.pool) == 0
        member.deliver(Code.TRANSACTIONS, rlp.list_of([wrapped(raw) for raw in sent[:2]]))
        await asyncio.sleep(1)
        assert len(one.node.pool) == 2
        share._free = free - 1
        share.leave()
        await asyncio.sleep(1)
        assert len(one.node.pool) == 3
        assert share.held == 0
        assert share._free == free

    run_nodes(tmp_path, 3, scenario)


def test_a_transaction_in_a_long_queue_is_fetched_from_a_member_that_announces_it(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode, third: EthNode) -> None:
        unknown, _ = connect(one.eth, other.eth, (KEYS[0], KEYS[1]))
        connect(one.eth, third.eth, (KEYS[0], KEYS[2]))
        await asyncio.sleep(1)
        by_member = one.eth.peers.by_address(KEYS[2].address)
        assert by_member is not None
        by_member.peer.is_static = True
        one.eth.transactions._unknown_share._free = 0
        junk = [legacy_transaction(DEV_KEYS[2], nonce=10**6 + nonce) for nonce in range(1500)]
        for start in range(0, len(junk), 500):
            unknown.deliver(Code.TRANSACTIONS, rlp.list_of([wrapped(raw) for raw in junk[start : start + 500]]))
        large = legacy_transaction(DEV_KEYS[1], 0, gas=200_000, data=bytes(5000))
        unknown.deliver(Code.TRANSACTIONS, rlp.list_of([wrapped(large)]))
        await asyncio.sleep(1)
        third.node.pool.submit([large], Origin.LOCAL)
        await asyncio.sleep(3)
        assert len(one.node.pool) == 1

    run_nodes(tmp_path, 3, scenario)

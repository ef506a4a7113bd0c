"""Tests the shared queue of transactions from unknown peers that wait for the pool."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from ophion.native.crypto import PrivateKey, keccak256
from ophion.peers.eth.messages import Code
from ophion.peers.eth.recent_transactions import RecentTransactions
from ophion.peers.eth.response_validation import wrapped
from ophion.peers.eth.transaction_intake import MAX_BYTES, IntakeShare, TransactionIntake
from ophion.pool.events import Origin
from ophion.pool.pool import TxPool
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


def test_the_fast_path_of_members_queues_what_the_slow_path_queues(tmp_path: Path) -> None:
    """The fast path takes messages whose transactions are all new."""

    async def scenario(one: EthNode, other: EthNode) -> None:
        connect(one.eth, other.eth)
        await asyncio.sleep(1)
        (peer,) = one.eth.peers
        peer.peer.is_static = True
        raws = [legacy_transaction(DEV_KEYS[0], nonce=nonce) for nonce in range(8)]
        found = [(keccak256(raw), raw) for raw in raws]
        await one.node.send(raws[0])
        senders = [bytes([number]) * 20 for number in range(8)]
        for some, names in (
            (found[1:4], senders[1:4]),
            (found[1:4], ()),
            (found[:2], senders[:2]),
            (found[5:7] + found[5:6], senders[:3]),
            (found[4:], senders),
            ([], ()),
        ):
            results = []
            for is_fast in (True, False):
                came: list[bytes] = []
                seen = RecentTransactions(100)
                seen.add(found[7][0])
                intake = TransactionIntake(
                    peer, one.node.pool, seen, one.eth.lane, came.append, lambda: None, lambda fast=is_fast: not fast
                )
                intake._is_busy = True
                hashes = [hash for hash, _ in some]
                intake.take(hashes, [raw for _, raw in some], b"".join(names))
                results.append((list(intake._waiting), intake._bytes, [hash in seen for hash in hashes]))
                assert not came or not is_fast or not intake._are_new(hashes)
            assert results[0] == results[1]

    run_nodes(tmp_path, 2, scenario)


def test_an_idle_intake_of_a_member_submits_what_its_queue_would_submit(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        connect(one.eth, other.eth)
        await asyncio.sleep(1)
        (peer,) = one.eth.peers
        peer.peer.is_static = True
        raws = [legacy_transaction(DEV_KEYS[0], nonce=nonce) for nonce in range(600)]
        hashes = list(map(keccak256, raws))
        senders = [bytes([number % 256]) * 20 for number in range(600)]
        for count, names in (
            (3, senders[:3]),
            (3, ()),
            (3, senders[:2]),
            (512, senders[:512]),
            (600, senders),
            (0, ()),
        ):
            results = []
            for is_idle in (True, False):
                submitted: list[tuple[list[bytes], bytes | None]] = []

                def submit(
                    batch: list[bytes], origin: Origin, named: bytes | None, log: list[Any] = submitted
                ) -> asyncio.Future[Any]:
                    log.append((list(batch), named))
                    return asyncio.get_running_loop().create_future()

                pool = SimpleNamespace(submit=submit, has_none=one.node.pool.has_none, get=one.node.pool.get)
                seen = RecentTransactions(2000)
                intake = TransactionIntake(
                    peer, cast(TxPool, pool), seen, one.eth.lane, lambda hash: None, lambda: None, lambda: False
                )
                intake._is_busy = not is_idle
                intake.take(hashes[:count], raws[:count], b"".join(names))
                if not is_idle:
                    intake._is_busy = False
                    intake.submit()
                assert intake._is_busy == bool(count)
                results.append((submitted, intake._bytes, list(intake._waiting), [hash in seen for hash in hashes]))
            assert results[0] == results[1]

    run_nodes(tmp_path, 2, scenario)


def test_senders_that_a_peer_names_change_no_result(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        connect(one.eth, other.eth)
        await asyncio.sleep(1)
        (peer,) = one.eth.peers
        peer.peer.is_static = True
        keys = DEV_KEYS[:2]
        for nonce in range(30):
            raws = [legacy_transaction(key, nonce=nonce) for key in keys]
            senders = [key.address for key in (keys if nonce % 3 else keys[::-1])]
            intake = one.eth.transactions._intakes[peer]
            named = b"".join(senders[: 1 + nonce % 5])
            assert intake.take_message(rlp.list_of([wrapped(raw) for raw in raws]), named)
            await asyncio.sleep(0.1)
        assert len(one.node.pool) == 60
        for key in keys:
            assert all(one.node.pool.by_sender_nonce(key.address, nonce) is not None for nonce in range(30))

    run_nodes(tmp_path, 2, scenario)

"""Tests the pool from the outside: batches, answers, events, new heads, restarts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chain.events import ChainBlock, Extended, Reorged
from ophion.chain.gas_price import FeeFloor
from ophion.errors import StorageError
from ophion.native.crypto import PrivateKey
from ophion.native.executor import State
from ophion.native.transactions import Body, decode_transactions
from ophion.pool.admission import PoolHead
from ophion.pool.content import PoolContent
from ophion.pool.events import Added, Admission, Admitted, Dropped, DropReason, Origin, PoolEvent, Rejected
from ophion.pool.journal import TransactionJournal
from ophion.pool.options import PoolConfig
from ophion.pool.pool import TxPool
from ophion.primitives.header import HashedHeader, Header
from ophion.runtime.clock import ManualClock
from ophion.runtime.thread_pools import InlineLanes, ThreadLanes
from ophion.testing.signing import (
    DEV_KEYS,
    blob_transaction,
    fee_transaction,
    legacy_transaction,
    set_code_transaction,
    signed_authorization,
    with_empty_blobs,
)

A, B, C = DEV_KEYS
RICH = 10**24
HEADER = HashedHeader(
    Header(
        bytes(32),
        bytes(32),
        bytes(20),
        bytes(32),
        bytes(32),
        bytes(32),
        bytes(256),
        0,
        1,
        1,
        0,
        0,
        b"",
        bytes(32),
        bytes(8),
    ),
    bytes(32),
)


@dataclass
class Bench:
    """A pool with its dependencies."""

    world: Callable[..., State]
    config: PoolConfig = field(default_factory=PoolConfig)
    floor: FeeFloor = field(default_factory=FeeFloor)
    journal: TransactionJournal | None = None
    accounts: dict[bytes, tuple[int, int]] = field(default_factory=lambda: {key.address: (0, RICH) for key in DEV_KEYS})

    def __post_init__(self) -> None:
        self.clock = ManualClock()
        self.events: list[PoolEvent] = []
        self.pool = TxPool(self.config, self.floor, InlineLanes(), self.clock, self.head(), journal=self.journal)
        self.pool.events.listen(self.events.append)

    def head(self) -> PoolHead:
        return PoolHead("osaka", 2018, 30_000_000, 0, 49_152, self.world(self.accounts), blob_limit=6)

    async def add(self, *raws: bytes, origin: Origin = Origin.LOCAL) -> list[Admission]:
        return await self.pool.add(raws, origin)

    def mine(self, *raws: bytes) -> ChainBlock:
        """Make a block with these transactions, and advance the accounts' nonces."""
        block = ChainBlock(HEADER, Body.of(raws, [], []))
        for transaction in block.body.transactions:
            balance = self.accounts[transaction.sender][1]
            self.accounts[transaction.sender] = (transaction.nonce + 1, balance)
        return block

    def order(self) -> list[tuple[int, int]]:
        """Return (sender, nonce) in building order."""
        addresses = [key.address for key in DEV_KEYS]
        return [(addresses.index(item.sender), item.nonce) for item in self.pool.best(0)]


def reasons(admissions: Sequence[Admission]) -> list[str | None]:
    return [one.error.reason if isinstance(one, Rejected) else None for one in admissions]


def told(story: Callable[[Bench], Awaitable[Any]], bench: Bench) -> Any:
    return asyncio.run(story(bench))  # type: ignore[arg-type]


def test_a_batch_is_answered_in_its_order(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        good = legacy_transaction(A, 0)
        answers = await bench.add(good, b"\x00", legacy_transaction(A, 0, gas_price=1), good)
        assert reasons(answers) == [None, "malformed", "gas-price-too-low", "known"]
        [transaction] = decode_transactions([good])
        assert not isinstance(transaction, str)
        assert answers[0] == Admitted(transaction.hash)
        assert isinstance(answers[3], Rejected)
        assert answers[3].hash == transaction.hash
        assert answers[3].error.message == "Known transaction"

    told(story, Bench(world))


def test_listeners_get_a_batch_once(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        await bench.add(legacy_transaction(A, 0), b"", legacy_transaction(B, 0))
        [event] = bench.events
        assert isinstance(event, Added)
        assert [item.sender for item in event.transactions] == [A.address, B.address]

    told(story, Bench(world))


def test_transactions_that_a_block_has_are_not_left(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        raws = [legacy_transaction(A, nonce) for nonce in range(3)]
        await bench.add(*raws)
        items = bench.pool.transactions()
        assert bench.pool.those_left(items) == items
        for mined, left in ((raws[:1], items[1:]), (raws[1:], [])):
            bench.pool.on_chain_event(Extended((bench.mine(*mined),)), bench.head())
            assert bench.pool.those_left(items) == left

    told(story, Bench(world))


@pytest.mark.parametrize(
    ("floor", "bump", "old", "new", "is_taken"),
    [
        (1000, None, 10_000, 10_999, False),
        (1000, None, 10_000, 11_000, True),
        (1000, 50, 10_000, 11_000, False),
        (1000, 50, 10_000, 15_000, True),
        (0, None, 10_000, 10_001, True),
        (0, None, 10_000, 10_000, False),
        (0, 10, 10_000, 10_001, False),
        (1000, 0, 10_000, 10_001, True),
    ],
)
def test_a_replacement_must_raise_the_price(
    world: Callable[..., State], floor: int, bump: int | None, old: int, new: int, is_taken: bool
) -> None:
    async def story(bench: Bench) -> None:
        await bench.add(legacy_transaction(A, 0, gas_price=old))
        [answer] = await bench.add(legacy_transaction(A, 0, gas_price=new, value=1))
        if is_taken:
            assert isinstance(answer, Admitted)
            assert len(bench.pool) == 1
            dropped = [event for event in bench.events if isinstance(event, Dropped)]
            assert [event.reason for event in dropped] == [DropReason.REPLACED]
        else:
            assert isinstance(answer, Rejected)
            assert (answer.error.reason, answer.error.message) == ("underpriced", "Replacement transaction underpriced")

    told(story, Bench(world, PoolConfig(price_bump=bump), FeeFloor(floor, 0)))


def test_both_prices_of_a_fee_transaction_must_rise(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        await bench.add(fee_transaction(A, 0, max_fee=20_000, tip=10_000))
        assert reasons(await bench.add(fee_transaction(A, 0, max_fee=30_000, tip=10_000))) == ["underpriced"]
        assert reasons(await bench.add(fee_transaction(A, 0, max_fee=22_000, tip=11_000))) == [None]

    told(story, Bench(world))


def test_with_one_price_the_maximum_fee_decides(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        await bench.add(fee_transaction(A, 0, max_fee=20_000, tip=10_000))
        for max_fee, tip in ((20_000, 11_000), (19_000, 12_000)):
            assert reasons(await bench.add(fee_transaction(A, 0, max_fee=max_fee, tip=tip))) == ["underpriced"]
        for max_fee, tip in ((20_001, 10_000), (30_000, 9_000)):
            assert reasons(await bench.add(fee_transaction(A, 0, max_fee=max_fee, tip=tip))) == [None]

    told(story, Bench(world, PoolConfig(replaces_by_fee=True), FeeFloor(0, 0)))


def test_a_replacement_within_one_batch_is_announced_once(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        await bench.add(legacy_transaction(A, 0, gas_price=10_000), legacy_transaction(A, 0, gas_price=20_000))
        added = [event for event in bench.events if isinstance(event, Added)]
        assert [item.max_fee for event in added for item in event.transactions] == [20_000]

    told(story, Bench(world))


def test_blobs_are_sent_with_their_transaction(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        [answer] = await bench.add(blob_transaction(A, 0, [b"\x01" + bytes(31)]))
        assert isinstance(answer, Rejected)
        assert answer.error.reason == "malformed"
        assert "blobs of a blob transaction are missing" in answer.error.message

    told(story, Bench(world))


def test_blobs_are_kept_as_long_as_their_transaction(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        raw = with_empty_blobs(A, 0, 2)
        [answer] = await bench.add(raw)
        assert isinstance(answer, Admitted)
        item = bench.pool.get(answer.hash)
        assert item is not None
        assert bench.pool.network_form(item) == raw
        assert len(item.transaction.raw) < 1000
        bench.pool.drop([answer.hash], DropReason.EXPIRED)
        assert bench.pool.network_form(item) is None

    told(story, Bench(world))


def test_blobs_are_removed_with_an_evicted_transaction(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        raw = with_empty_blobs(A, 0, 1)
        await bench.add(raw, origin=Origin.REMOTE)
        for _ in range(3):
            await bench.add(legacy_transaction(B, 0))
            await bench.add(raw, origin=Origin.REMOTE)
        assert (len(bench.pool._blobs), bench.pool._blobs.held) == (0, 0)

    told(story, Bench(world, PoolConfig(max_size=1)))


def test_the_next_nonce_follows_the_unbroken_run(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        assert bench.pool.next_nonce(A.address) is None
        await bench.add(legacy_transaction(A, 2))
        assert bench.pool.next_nonce(A.address) is None, "a gap comes first"
        await bench.add(legacy_transaction(A, 0), legacy_transaction(A, 4))
        assert bench.pool.next_nonce(A.address) == 1
        await bench.add(legacy_transaction(A, 1))
        assert bench.pool.next_nonce(A.address) == 3

    told(story, Bench(world))


def test_counts_and_content_distinguish_pending_from_queued(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        await bench.add(legacy_transaction(A, 0), legacy_transaction(A, 2))
        await bench.add(legacy_transaction(B, 5), origin=Origin.REMOTE)
        pool = bench.pool
        assert pool.counts() == (1, 2)
        statistics = pool.statistics()
        assert (statistics.max_size, statistics.local_count, statistics.remote_count) == (4096, 2, 1)
        content = pool.content()
        assert {sender: list(nonces) for sender, nonces in content.pending.items()} == {A.address: [0]}
        assert {sender: list(nonces) for sender, nonces in content.queued.items()} == {A.address: [2], B.address: [5]}
        assert pool.content(B.address).pending == {}
        assert pool.content(C.address) == PoolContent({}, {})
        assert [item.is_local for item in pool.transactions()] == [True, True, False]
        found = pool.by_sender_nonce(B.address, 5)
        assert found is not None
        assert pool.get(found.hash) is found

    told(story, Bench(world))


def test_a_full_pool_drops_the_least_wanted_without_an_error(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        await bench.add(legacy_transaction(A, 0), origin=Origin.REMOTE)
        await bench.add(legacy_transaction(B, 0))
        assert reasons(await bench.add(legacy_transaction(C, 0))) == [None]
        assert [item.sender for item in bench.pool.transactions()] == [B.address, C.address]
        last = bench.events[-1]
        assert isinstance(last, Dropped)
        assert (last.reason, [item.sender for item in last.transactions]) == (DropReason.EVICTED, [A.address])

    told(story, Bench(world, PoolConfig(max_size=2)))


def test_mined_transactions_leave_without_being_dropped(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        first, second = legacy_transaction(A, 0), legacy_transaction(A, 1)
        await bench.add(first, second, legacy_transaction(B, 0))
        bench.events.clear()
        version = bench.pool.version
        block = bench.mine(first)
        bench.pool.on_chain_event(Extended((block,)), bench.head())
        assert bench.order() == [(0, 1), (1, 0)]
        assert bench.events == []
        assert bench.pool.version > version

    told(story, Bench(world))


def test_a_transaction_overtaken_by_another_with_its_nonce_is_dropped(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        await bench.add(legacy_transaction(A, 0), legacy_transaction(A, 1))
        bench.events.clear()
        block = bench.mine(legacy_transaction(A, 0, value=5))
        bench.pool.on_chain_event(Extended((block,)), bench.head())
        assert bench.order() == [(0, 1)]
        [event] = bench.events
        assert isinstance(event, Dropped)
        assert event.reason is DropReason.STALE

    told(story, Bench(world))


def test_a_mined_transaction_closes_the_gap_for_those_that_waited(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        await bench.add(legacy_transaction(A, 1))
        assert bench.order() == []
        bench.pool.on_chain_event(Extended((bench.mine(legacy_transaction(A, 0)),)), bench.head())
        assert bench.order() == [(0, 1)]

    told(story, Bench(world))


def test_reorganised_transactions_return_as_remote_unless_the_new_branch_holds_them(
    world: Callable[..., State],
) -> None:
    async def story(bench: Bench) -> None:
        remined, lost = legacy_transaction(A, 0), legacy_transaction(A, 1)
        await bench.add(remined, lost, legacy_transaction(A, 2))
        old = bench.mine(remined, lost)
        bench.pool.on_chain_event(Extended((old,)), bench.head())
        assert bench.order() == [(0, 2)]
        bench.accounts[A.address] = (0, RICH)
        new = bench.mine(remined)
        bench.pool.on_chain_event(Reorged((old,), (new,)), bench.head())
        assert bench.order() == [(0, 1), (0, 2)]
        returned = bench.pool.by_sender_nonce(A.address, 1)
        assert returned is not None
        assert not returned.is_local

    told(story, Bench(world))


def test_old_transactions_expire(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        await bench.add(legacy_transaction(A, 0))
        bench.clock.advance(3600 * 2)
        await bench.add(legacy_transaction(A, 1))
        bench.clock.advance(3600 * 2)
        bench.pool.sweep()
        assert [item.nonce for item in bench.pool.transactions()] == [1]
        last = bench.events[-1]
        assert isinstance(last, Dropped)
        assert last.reason is DropReason.EXPIRED

    told(story, Bench(world, PoolConfig(retention_hours=3)))


def test_what_cannot_be_built_is_dropped(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        [answer] = await bench.add(legacy_transaction(A, 0))
        assert isinstance(answer, Admitted)
        bench.pool.drop([answer.hash, b"unknown"], DropReason.INVALID)
        assert len(bench.pool) == 0
        assert not bench.pool.has_executable

    told(story, Bench(world))


def test_local_transactions_survive_a_restart_in_their_order(world: Callable[..., State], tmp_path: Path) -> None:
    path = tmp_path / "journal"

    async def before(bench: Bench) -> None:
        assert bench.pool.restore() == 0
        await bench.add(legacy_transaction(A, 0), legacy_transaction(B, 0))
        await bench.add(legacy_transaction(C, 0), origin=Origin.REMOTE)
        bench.clock.advance(10)
        await bench.add(legacy_transaction(A, 1))

    told(before, Bench(world, journal=TransactionJournal(path)))
    again = Bench(world, journal=TransactionJournal(path))
    assert again.pool.restore() == 3
    assert again.order() == [(0, 0), (1, 0), (0, 1)]
    assert again.pool.statistics().local_count == 3
    assert [item.added_at for item in again.pool.transactions()] == [1_700_000_000.0] * 2 + [1_700_000_010.0]


def test_a_restart_does_not_bring_back_what_was_mined(world: Callable[..., State], tmp_path: Path) -> None:
    path = tmp_path / "journal"

    async def before(bench: Bench) -> None:
        bench.pool.restore()
        await bench.add(legacy_transaction(A, 0), legacy_transaction(A, 1))

    told(before, Bench(world, journal=TransactionJournal(path)))
    again = Bench(world, journal=TransactionJournal(path), accounts={A.address: (1, RICH)})
    assert again.pool.restore() == 1
    assert again.order() == [(0, 1)]


def test_what_a_restart_refuses_for_now_is_kept_for_the_next(
    world: Callable[..., State], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "journal"

    async def before(bench: Bench) -> None:
        bench.pool.restore()
        await bench.add(legacy_transaction(A, 0), legacy_transaction(B, 0))

    async def dear(bench: Bench) -> None:
        assert bench.pool.restore() == 0
        assert "kept for the next start count=2 reason=Gas price below" in caplog.text
        # rewriting the journal keeps the two transactions, although the pool does not hold them
        local = bench.pool._local
        assert local is not None
        local.journal.rewrite(local._live_entries())
        local.journal.close()

    told(before, Bench(world, journal=TransactionJournal(path)))
    told(dear, Bench(world, journal=TransactionJournal(path), floor=FeeFloor(10**18, 0)))
    caplog.clear()
    again = Bench(world, journal=TransactionJournal(path))
    assert again.pool.restore() == 2
    assert "kept for the next start" not in caplog.text
    # the journal drops transactions that stay below the minimum price for some hours
    late = Bench(world, journal=TransactionJournal(path), floor=FeeFloor(10**18, 0))
    late.clock.advance(14 * 3600)
    assert late.pool.restore() == 0
    assert Bench(world, journal=TransactionJournal(path)).pool.restore() == 0


def test_what_cannot_be_kept_is_not_acknowledged(world: Callable[..., State], tmp_path: Path) -> None:
    class Full(TransactionJournal):
        def append(self, entries: Any) -> None:
            raise StorageError("Cannot write: No space left on device")

    async def story(bench: Bench) -> None:
        with pytest.raises(StorageError, match="No space left"):
            await bench.add(legacy_transaction(A, 0))
        assert len(bench.pool) == 0

    told(story, Bench(world, journal=Full(tmp_path / "journal")))


def test_a_transaction_that_cannot_be_stored_replaces_none(world: Callable[..., State], tmp_path: Path) -> None:
    class Filling(TransactionJournal):
        is_full = False

        def append(self, data: bytes) -> None:
            if self.is_full:
                raise StorageError("Cannot write: No space left on device")
            super().append(data)

    journal = Filling(tmp_path / "journal")

    async def story(bench: Bench) -> None:
        bench.pool.restore()
        [admitted] = await bench.add(legacy_transaction(A, 0, gas_price=10**9))
        journal.is_full = True
        dearer = [legacy_transaction(A, 0, gas_price=price * 10**9) for price in (2, 3)]
        with pytest.raises(StorageError, match="No space left"):
            await bench.add(*dearer, legacy_transaction(B, 0))
        assert isinstance(admitted, Admitted)
        assert [item.hash for item in bench.pool.transactions()] == [admitted.hash]
        assert bench.order() == [(0, 0)]
        assert [type(event) for event in bench.events] == [Added], "the others cause no event"

    told(story, Bench(world, journal=journal))


def test_a_batch_that_fails_in_the_middle_leaves_nothing(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        def unreadable(sender: bytes) -> str | None:
            if sender == B.address:
                raise StorageError("a page is damaged")
            return None

        bench.pool._admitter.refusal_of = unreadable
        with pytest.raises(StorageError, match="a page is damaged"):
            await bench.add(legacy_transaction(A, 0), legacy_transaction(B, 0))
        assert len(bench.pool) == 0
        assert bench.events == []

    told(story, Bench(world))


def test_clients_that_fill_their_lane_do_not_stop_the_upkeep(
    world: Callable[..., State], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ophion.pool.pool._SYNC_INTERVAL_S", 0.001)
    journal = TransactionJournal(tmp_path / "journal")

    async def story(bench: Bench) -> None:
        lanes = ThreadLanes(read_threads=1, read_limit=1)
        bench.pool._lanes = lanes
        bench.pool.restore()
        over = threading.Event()
        lanes.read.submit(over.wait)
        running = asyncio.create_task(bench.pool.run(lambda: None))
        await bench.add(legacy_transaction(A, 0))
        async with asyncio.timeout(60):
            while journal._is_dirty:
                assert not running.done()
                await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.wait({running})
        over.set()
        lanes.close()

    told(story, Bench(world, journal=journal))


def test_a_journal_that_cannot_be_written_anew_stays_as_it_is(
    world: Callable[..., State], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Stiff(TransactionJournal):
        def is_wasteful(self, live_bytes: int) -> bool:
            return True

        def rewrite(self, entries: Any) -> None:
            raise StorageError("Cannot write journal: No space left on device")

    async def story(bench: Bench) -> None:
        raw = legacy_transaction(A, 0)
        await bench.add(raw)
        bench.pool.on_chain_event(Extended((bench.mine(raw),)), bench.head())
        assert len(bench.pool) == 0
        assert "journal keeps lines of mined transactions" in caplog.text
        assert "error=Cannot write journal: No space left on device" in caplog.text

    told(story, Bench(world, journal=Stiff(tmp_path / "journal")))


def test_the_journal_is_written_anew_when_most_of_it_is_mined(world: Callable[..., State], tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = TransactionJournal(path)

    async def story(bench: Bench) -> None:
        bench.pool.restore()
        raws = [legacy_transaction(A, nonce, data=bytes(30_000), gas=2_000_000) for nonce in range(25)]
        await bench.add(*raws)
        assert path.stat().st_size > 1_500_000
        bench.pool.on_chain_event(Extended((bench.mine(*raws),)), bench.head())
        journal.sync()
        assert path.stat().st_size == 0

    told(story, Bench(world, journal=journal))


def test_a_few_large_transactions_that_wait_do_not_have_the_journal_written_anew(
    world: Callable[..., State], tmp_path: Path
) -> None:
    class Counting(TransactionJournal):
        rewrites = 0

        def rewrite(self, entries: Any) -> None:
            self.rewrites += 1
            super().rewrite(entries)

    journal = Counting(tmp_path / "journal")

    async def story(bench: Bench) -> None:
        bench.pool.restore()
        await bench.add(*(legacy_transaction(A, nonce, data=bytes(30_000), gas=2_000_000) for nonce in range(1, 26)))
        for _ in range(3):
            bench.pool.on_chain_event(Extended((bench.mine(),)), bench.head())
            journal.sync()
        assert len(bench.pool) == 25
        assert journal.rewrites == 0

    told(story, Bench(world, journal=journal))


def test_the_journal_is_written_anew_also_while_no_block_comes(
    world: Callable[..., State], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ophion.pool.pool._SYNC_INTERVAL_S", 0.001)
    path = tmp_path / "journal"

    async def story(bench: Bench) -> None:
        bench.pool.restore()
        running = asyncio.create_task(bench.pool.run(lambda: None))
        for price in range(10_000, 100_000, 2_000):
            await bench.add(legacy_transaction(A, 1, data=bytes(30_000), gas=2_000_000, gas_price=price * 1000))
        async with asyncio.timeout(60):
            while path.stat().st_size > 500_000:
                assert not running.done()
                await asyncio.sleep(0.001)
        assert len(bench.pool) == 1
        running.cancel()
        await asyncio.wait({running})

    told(story, Bench(world, floor=FeeFloor(0), journal=TransactionJournal(path)))


def test_upkeep_sweeps_and_closes_the_journal(world: Callable[..., State], tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        bench.pool.restore()
        ready = asyncio.Event()
        running = asyncio.create_task(bench.pool.run(ready.set))
        await ready.wait()
        await bench.add(legacy_transaction(A, 0))
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()

    told(story, Bench(world, journal=TransactionJournal(tmp_path / "journal")))


def test_an_unlisted_sender_is_turned_away(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        pool = TxPool(
            bench.config,
            bench.floor,
            InlineLanes(),
            bench.clock,
            bench.head(),
            lambda sender: "not A" if sender == A.address else None,
        )
        answers = await pool.add([legacy_transaction(A, 0), legacy_transaction(B, 0)], Origin.LOCAL)
        assert reasons(answers) == ["not-authorized", None]
        assert isinstance(answers[0], Rejected)
        assert answers[0].error.detail == "not A"

    told(story, Bench(world))


def test_an_authorization_of_an_unlisted_account_is_refused(world: Callable[..., State]) -> None:
    """With an EIP-7702 authorization, a permitted sender could change an account that is not permitted."""

    async def story(bench: Bench) -> None:
        pool = TxPool(
            bench.config,
            bench.floor,
            InlineLanes(),
            bench.clock,
            bench.head(),
            lambda sender: "not B" if sender == B.address else None,
        )
        carried = set_code_transaction(A, 0, [signed_authorization(B, 0, bytes(20), 0)])
        own = set_code_transaction(A, 0, [signed_authorization(A, 0, bytes(20), 1)])
        answers = await pool.add([carried, own], Origin.LOCAL)
        assert reasons(answers) == ["not-authorized", None]
        assert isinstance(answers[0], Rejected)
        assert answers[0].error.detail == "authorization in the transaction: not B"

    told(story, Bench(world))


def test_a_sender_is_asked_about_once_until_rules_change(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        asked: list[bytes] = []
        forbidden: set[bytes] = set()

        def refusal_of(sender: bytes) -> str | None:
            asked.append(sender)
            return "forbidden" if sender in forbidden else None

        pool = TxPool(bench.config, bench.floor, InlineLanes(), bench.clock, bench.head(), refusal_of)
        mine = [legacy_transaction(A, nonce) for nonce in range(3)]
        assert reasons(await pool.add(mine[:2], Origin.LOCAL)) == [None, None]
        assert asked == [A.address]
        forbidden.add(A.address)
        pool.forget_accounts()
        assert reasons(await pool.add(mine[2:], Origin.LOCAL)) == ["not-authorized"]

    told(story, Bench(world))


def test_senders_are_remembered_within_bounds(world: Callable[..., State]) -> None:
    """The pool refuses transactions of unknown senders, each with its own key. Refused transactions leave no data in
    memory.
    """

    async def story(bench: Bench) -> None:
        strangers = [PrivateKey(bytes([number]) * 32) for number in range(1, 30)]
        for key in strangers:
            assert reasons(await bench.add(legacy_transaction(key, 0), origin=Origin.REMOTE)) == ["upfront-cost"]
        assert len(bench.pool._admitter.accounts) <= bench.config.max_size

    told(story, Bench(world, PoolConfig(max_size=8)))


def test_nothing_is_admitted_without_the_state_of_the_head(world: Callable[..., State]) -> None:
    async def story(bench: Bench) -> None:
        head = replace(bench.head(), state=None)
        pool = TxPool(bench.config, bench.floor, InlineLanes(), bench.clock, head)
        assert reasons(await pool.add([legacy_transaction(A, 0)], Origin.LOCAL)) == ["syncing"]

    told(story, Bench(world))

"""Tests clients that continue to send after their last answer."""

from __future__ import annotations

import asyncio

from ophion.rpc.transport.graceful_close import READ_S, GracefulClose
from ophion.runtime.fair_scheduler import SHARE_S, FairScheduler
from tests.unit.rpc.wire import MemoryTransport


def test_what_still_comes_is_thrown_away_up_to_a_limit() -> None:
    async def main() -> None:
        transport = MemoryTransport()
        lingering = GracefulClose(transport, FairScheduler())
        assert transport.has_eof
        for _ in range(64):
            lingering.receive(1_000_000)
        assert not transport.is_aborted
        lingering.receive(4_000_000)
        assert transport.is_aborted

    asyncio.run(main())


def test_others_come_first() -> None:
    async def main() -> None:
        transport, scheduler = MemoryTransport(), FairScheduler()
        lingering = GracefulClose(transport, scheduler)
        assert transport.is_reading_paused
        await asyncio.sleep(0)
        assert not transport.is_reading_paused
        lingering.receive(1000)
        lingering.receive(1000)
        assert transport.is_reading_paused
        assert len(scheduler) == 1
        await asyncio.sleep(0)
        assert not transport.is_reading_paused

    asyncio.run(main())


def test_few_of_many_closing_connections_are_read_in_each_step() -> None:
    """Resuming a read costs nothing at first but causes work later. So the scheduler charges the cost of a read in
    advance. This limits the reads per step.
    """

    async def main() -> None:
        scheduler = FairScheduler()
        crowd = [MemoryTransport() for _ in range(1000)]
        for transport in crowd:
            GracefulClose(transport, scheduler)
        seen = 0
        while len(scheduler):
            await asyncio.sleep(0)
            before, seen = seen, sum(not transport.is_reading_paused for transport in crowd)
            assert seen - before <= SHARE_S / READ_S + 1
        assert seen == len(crowd)

    asyncio.run(main())


def test_where_a_connection_cannot_be_half_closed_it_is_closed() -> None:
    class Encrypted(MemoryTransport):
        def can_write_eof(self) -> bool:
            return False

    async def main() -> None:
        transport = Encrypted()
        GracefulClose(transport, FairScheduler())
        assert transport.is_closed

    asyncio.run(main())

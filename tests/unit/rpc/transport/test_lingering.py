"""Clients that go on sending."""

from __future__ import annotations

import asyncio

from ophion.rpc.transport.lingering import Lingering
from ophion.rpc.transport.turns import TURN_S, Turns
from tests.unit.rpc.wire import MemoryTransport


def test_what_still_comes_is_thrown_away_up_to_a_limit() -> None:
    async def main() -> None:
        transport = MemoryTransport()
        lingering = Lingering(transport, Turns())
        assert transport.has_eof
        for _ in range(64):
            lingering.receive(1_000_000)
        assert not transport.is_aborted
        lingering.receive(4_000_000)
        assert transport.is_aborted

    asyncio.run(main())


def test_others_come_first() -> None:
    async def main() -> None:
        transport, turns = MemoryTransport(), Turns()
        lingering = Lingering(transport, turns)
        turns.spend(TURN_S)
        lingering.receive(1000)
        lingering.receive(1000)
        assert transport.is_reading_paused
        assert len(turns) == 1
        await asyncio.sleep(0)
        assert not transport.is_reading_paused

    asyncio.run(main())


def test_where_a_connection_cannot_be_half_closed_it_is_closed() -> None:
    class Encrypted(MemoryTransport):
        def can_write_eof(self) -> bool:
            return False

    async def main() -> None:
        transport = Encrypted()
        Lingering(transport, Turns())
        assert transport.is_closed

    asyncio.run(main())

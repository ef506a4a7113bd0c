"""Tests requests that wait until transactions are mined."""

from __future__ import annotations

import asyncio

from ophion.rpc.services.receipt_waits import ReceiptWaits

HASH, OTHER = b"\x01" * 32, b"\x02" * 32


def test_those_wait_whose_transaction_is_not_there_yet() -> None:
    async def story() -> None:
        waits = ReceiptWaits()
        tasks = [asyncio.create_task(waits.wait(hash, 60)) for hash in (HASH, HASH, OTHER)]
        await asyncio.sleep(0)
        waits.on_head(lambda hash: False)
        waits.on_head(lambda hash: hash == HASH)
        await asyncio.gather(*tasks[:2])
        assert not tasks[2].done()
        assert len(waits) == 1
        tasks[2].cancel()
        await asyncio.gather(tasks[2], return_exceptions=True)
        assert len(waits) == 0

    asyncio.run(story())


def test_time_ends_a_wait() -> None:
    async def story() -> None:
        waits = ReceiptWaits()
        await waits.wait(HASH, 0.001)
        assert len(waits) == 0

    asyncio.run(story())

"""Decoding beside the loop: numbers come back in order, on the loop, until it is closed."""

from __future__ import annotations

import asyncio

import pytest

from ophion.runtime.decoding import Decoding, InlineDecoding, ThreadDecoding
from ophion.testing.signing import DEV_KEYS, legacy_transaction

RAWS = [legacy_transaction(DEV_KEYS[0], nonce) for nonce in range(3)]


@pytest.mark.parametrize("kind", [ThreadDecoding, InlineDecoding])
def test_numbers_come_back_in_the_order_of_submission(kind: type[Decoding]) -> None:
    async def story() -> list[int]:
        decoding, numbers, ready = kind(), [], asyncio.Event()

        def collect() -> None:
            for number, decoded in decoding.collect():
                assert len(decoded) == number
                numbers.append(number)
            if len(numbers) == 4:
                ready.set()

        decoding.listen(collect)
        for number in range(4):
            decoding.submit(number, RAWS[:number])
        await ready.wait()
        decoding.close()
        return numbers

    assert asyncio.run(story()) == [0, 1, 2, 3]


def test_it_serves_one_loop_after_another() -> None:
    decoding = ThreadDecoding()

    async def story() -> str:
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        decoding.listen(lambda: found.set_result(str(decoding.collect()[0][1][0])))
        decoding.submit(7, [b"nonsense"])
        return await found

    assert asyncio.run(story()) == asyncio.run(story())
    decoding.close()


def test_it_can_be_closed_before_and_after_its_loop() -> None:
    ThreadDecoding().close()

    async def listen(decoding: ThreadDecoding) -> None:
        decoding.listen(lambda: None)

    decoding = ThreadDecoding()
    asyncio.run(listen(decoding))
    decoding.close()
    with pytest.raises(RuntimeError):
        decoding.submit(1, RAWS)

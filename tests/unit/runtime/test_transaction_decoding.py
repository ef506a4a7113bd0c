"""Decoding off the loop: results arrive on the loop in order, until the loop is closed."""

from __future__ import annotations

import asyncio

import pytest

from ophion.runtime.block_priority import BlockPriority
from ophion.runtime.transaction_decoding import InlineTransactionDecoder, ThreadTransactionDecoder, TransactionDecoder
from ophion.testing.signing import DEV_KEYS, legacy_transaction

RAWS = [legacy_transaction(DEV_KEYS[0], nonce) for nonce in range(3)]


@pytest.mark.parametrize("kind", [ThreadTransactionDecoder, InlineTransactionDecoder])
def test_results_are_in_the_order_of_submission(kind: type[TransactionDecoder]) -> None:
    async def story() -> list[int]:
        decoding, numbers, ready = kind(), [], asyncio.Event()

        def collect() -> None:
            some, decoded = decoding.collect()
            assert len(decoded) == sum(some)
            numbers.extend(some)
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
    decoding = ThreadTransactionDecoder()

    async def story() -> str:
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        decoding.listen(lambda: found.set_result(str(decoding.collect()[1][0])))
        decoding.submit(7, [b"nonsense"])
        return await found

    assert asyncio.run(story()) == asyncio.run(story())
    decoding.close()


def test_submissions_of_an_ended_loop_do_not_block_others() -> None:
    decoding = ThreadTransactionDecoder()

    async def leave() -> None:
        decoding.listen(lambda: None)
        decoding.submit(1, [b"nonsense"])

    async def story() -> list[int]:
        numbers: list[int] = []
        done = asyncio.Event()

        def collect() -> None:
            numbers.extend(decoding.collect()[0])
            if 2 in numbers:
                done.set()

        decoding.listen(collect)
        decoding.submit(2, [b"nonsense"])
        await done.wait()
        return numbers

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    loop.close()
    assert asyncio.run(story()) == [1, 2]
    decoding.close()


@pytest.mark.parametrize("others", [0, 1, 5, 30])
def test_a_single_submission_does_not_wait_for_others(others: int) -> None:
    async def story() -> int:
        decoding, seen, done = ThreadTransactionDecoder(), [], asyncio.Event()

        def collect() -> None:
            seen.extend(decoding.collect()[0])
            if len(seen) == others + 1:
                done.set()

        decoding.listen(collect)
        for number in range(others + 1):
            decoding.submit(number, RAWS[:1])
            await asyncio.sleep(0)
        await done.wait()
        decoding.close()
        return len(seen)

    assert asyncio.run(story()) == others + 1


def test_it_can_be_closed_before_and_after_its_loop() -> None:
    ThreadTransactionDecoder().close()

    async def submit(decoding: ThreadTransactionDecoder) -> None:
        decoding.submit(1, RAWS)

    decoding = ThreadTransactionDecoder()
    with pytest.raises(RuntimeError):
        asyncio.run(submit(decoding))  # `submit` fails before `listen` is called
    decoding.listen(lambda: None)
    asyncio.run(submit(decoding))
    decoding.close()
    with pytest.raises(RuntimeError):
        asyncio.run(submit(decoding))


def test_few_are_collected_at_a_time_and_none_during_block_priority() -> None:
    async def story() -> list[int]:
        block_priority, sizes, waited = BlockPriority(1e6), list[int](), list[bool]()
        decoding, ready = ThreadTransactionDecoder(block_priority), asyncio.Event()

        def collect() -> None:
            if not waited:
                block_priority.begin()
            found, _ = decoding.collect()
            if block_priority.is_on:
                waited.append(found == [])
                block_priority.end()
                return
            sizes.append(len(found))
            if sum(sizes) == 100:
                ready.set()

        decoding.listen(collect)
        for number in range(100):
            decoding.submit(number, RAWS[:1])
        await ready.wait()
        decoding.close()
        assert waited == [True]
        return sizes

    assert max(asyncio.run(story())) <= 32


def test_an_eager_decoder_decodes_a_single_transaction_without_its_thread() -> None:
    async def story() -> list[int]:
        decoding, numbers, ready = ThreadTransactionDecoder(), [], asyncio.Event()
        decoding.is_eager = True

        def collect() -> None:
            numbers.extend(decoding.collect()[0])
            ready.set()

        decoding.listen(collect)
        decoding.submit(1, RAWS[:1])
        assert numbers == [], "others may arrive in the same loop step"
        await asyncio.sleep(0)
        assert numbers == [1]
        decoding.close()
        return numbers

    asyncio.run(story())


def test_an_eager_decoder_keeps_the_order_of_submissions() -> None:
    async def story() -> list[int]:
        decoding, numbers, ready = ThreadTransactionDecoder(), [], asyncio.Event()
        decoding.is_eager = True

        def collect() -> None:
            numbers.extend(decoding.collect()[0])
            if len(numbers) == 5:
                ready.set()

        decoding.listen(collect)
        for number in range(3):
            decoding.submit(number, RAWS[number : number + 1])
        await asyncio.sleep(0)
        decoding.submit(3, RAWS[:1])
        decoding.submit(4, RAWS[:2])
        await ready.wait()
        decoding.close()
        return numbers

    assert asyncio.run(story()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", [ThreadTransactionDecoder, InlineTransactionDecoder])
def test_expected_senders_change_no_result(kind: type[TransactionDecoder]) -> None:
    async def story() -> list[object]:
        decoding, found, ready = kind(), list[object](), asyncio.Event()

        def collect() -> None:
            found.extend(decoding.collect()[1])
            if len(found) == 5 * len(RAWS):
                ready.set()

        decoding.listen(collect)
        own, other = DEV_KEYS[0].address, DEV_KEYS[1].address
        for senders in (None, own * 3, other * 3, own + other + own, own):
            decoding.submit(0, RAWS, senders)
        await ready.wait()
        decoding.close()
        return [one if isinstance(one, str) else one.sender for one in found]  # type: ignore[attr-defined]

    assert asyncio.run(story()) == [DEV_KEYS[0].address] * 15

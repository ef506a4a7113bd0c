"""Arriving transactions are decoded off the event loop, admitted in order, and all answered."""

from __future__ import annotations

import asyncio

import pytest

from ophion.native.transactions import decode_transactions
from ophion.pool.intake import Arrival, BatchSubmission, PoolIntake
from ophion.runtime.transaction_decoding import Decoded, InlineTransactionDecoder, ThreadTransactionDecoder
from ophion.testing.signing import DEV_KEYS, legacy_transaction

RAWS = [legacy_transaction(DEV_KEYS[0], nonce) for nonce in range(20)]


class Desk:
    """Records the nonces of each batch and answers with their number."""

    def __init__(self) -> None:
        self.batches: list[list[int | str]] = []

    def admit(self, arrivals: list[Arrival[int]], decoded: Decoded) -> None:
        self.batches.append([one if isinstance(one, str) else one.nonce for one in decoded])
        for arrival in arrivals:
            arrival.answer(len(arrival.raws))


def test_callers_of_one_loop_turn_are_admitted_together() -> None:
    desk = Desk()

    async def story() -> list[int]:
        intake = PoolIntake(InlineTransactionDecoder(), desk.admit)
        return await asyncio.gather(*(intake.submit([raw], True) for raw in RAWS))

    assert asyncio.run(story()) == [1] * 20
    assert desk.batches == [list(range(20))]


def test_what_callers_have_decoded_is_admitted_together_too() -> None:
    desk = Desk()

    async def story() -> list[int]:
        intake = PoolIntake(InlineTransactionDecoder(), desk.admit)
        made = [one for one in decode_transactions(RAWS) if not isinstance(one, str)]
        arrivals: list[BatchSubmission[int]] = [BatchSubmission([one.raw], True) for one in made]
        for arrival, one in zip(arrivals, made, strict=True):
            intake.bring_decoded(arrival, one)
        return await asyncio.gather(*arrivals)

    assert asyncio.run(story()) == [1] * 20
    assert desk.batches == [list(range(20))]


def test_arrivals_keep_their_order_whatever_their_size() -> None:
    desk = Desk()

    async def story() -> None:
        decoding = ThreadTransactionDecoder()
        intake = PoolIntake(decoding, desk.admit)
        first = intake.submit(RAWS[:12], True)
        later = [intake.submit([raw], True) for raw in RAWS[12:]]
        assert await asyncio.gather(first, *later) == [12, *[1] * 8]
        decoding.close()

    asyncio.run(story())
    assert [nonce for batch in desk.batches for nonce in batch] == list(range(20))


def test_earlier_submissions_do_not_wait_for_later_ones() -> None:
    async def story() -> None:
        decoding = ThreadTransactionDecoder()
        intake = PoolIntake(decoding, Desk().admit)
        first = intake.submit(RAWS[:1], True)
        last = intake.submit(RAWS * 500, True)
        await first
        assert not last.done()
        assert await last == 10_000
        decoding.close()

    asyncio.run(story())


def test_decoding_that_has_ended_is_an_error() -> None:
    async def story() -> None:
        decoding = ThreadTransactionDecoder()
        intake = PoolIntake(decoding, Desk().admit)
        assert await intake.submit(RAWS[:1], True) == 1
        decoding.close()
        with pytest.raises(RuntimeError):
            await intake.submit(RAWS, True)

    asyncio.run(story())


def test_a_failure_at_the_desk_reaches_all_who_wait() -> None:
    def admit(arrivals: list[Arrival[int]], decoded: Decoded) -> None:
        arrivals[0].answer(7)
        raise OSError("no room")

    async def story() -> list[int | BaseException]:
        intake = PoolIntake(InlineTransactionDecoder(), admit)
        return await asyncio.gather(*(intake.submit([raw], True) for raw in RAWS[:3]), return_exceptions=True)

    answers = asyncio.run(story())
    assert answers[0] == 7
    assert [str(answer) for answer in answers[1:]] == ["no room", "no room"]


def test_bytes_that_are_no_transaction_come_with_a_reason() -> None:
    desk = Desk()

    async def story() -> None:
        await PoolIntake(InlineTransactionDecoder(), desk.admit).submit([b"\xc0"], False)

    asyncio.run(story())
    assert desk.batches == [["input too short"]]

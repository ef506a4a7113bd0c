"""Arrivals: what comes together is decoded together, in order, and everybody hears something."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from ophion.native.transactions import decode_transactions
from ophion.pool import intake as intake_module
from ophion.pool.intake import Arrival, Decoded, Intake
from ophion.runtime.lanes import InlineLanes, ThreadLane
from ophion.testing.signing import DEV_KEYS, legacy_transaction

RAWS = [legacy_transaction(DEV_KEYS[0], nonce) for nonce in range(20)]


class Desk:
    """Notes the nonces of each batch that is handed over and answers with their number."""

    def __init__(self) -> None:
        self.batches: list[list[int | str]] = []

    def admit(self, arrivals: list[Arrival[int]], decoded: Decoded) -> None:
        self.batches.append([one if isinstance(one, str) else one.nonce for one in decoded])
        for arrival in arrivals:
            arrival.answer(len(arrival.raws))


def test_callers_of_one_loop_turn_share_one_crossing(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counted(raws: Sequence[bytes]) -> Any:
        sizes.append(len(raws))
        return decode_transactions(raws)

    monkeypatch.setattr(intake_module, "decode_transactions", counted)

    async def story() -> list[int]:
        intake = Intake(InlineLanes().admit, Desk().admit)
        return await asyncio.gather(*(intake.submit([raw], True) for raw in RAWS))

    assert asyncio.run(story()) == [1] * 20
    assert sizes == [20]


def test_what_arrives_while_a_batch_is_decoded_forms_the_next() -> None:
    desk = Desk()

    async def story() -> None:
        lane = ThreadLane("admit", 1, None)
        intake = Intake(lane, desk.admit)
        first = intake.submit(RAWS[:12], True)
        await asyncio.sleep(0)
        later = [intake.submit([raw], True) for raw in RAWS[12:20]]
        assert await asyncio.gather(first, *later) == [12, *[1] * 8]
        lane.close()

    asyncio.run(story())
    assert desk.batches == [list(range(12)), list(range(12, 20))]


def test_one_that_is_decoded_at_once_does_not_overtake_a_batch() -> None:
    desk = Desk()

    async def story() -> None:
        lane = ThreadLane("admit", 1, None)
        intake = Intake(lane, desk.admit)
        batch = intake.submit(RAWS[:12], True)
        await asyncio.sleep(0)
        await asyncio.gather(batch, intake.submit(RAWS[12:13], True))
        lane.close()

    asyncio.run(story())
    assert desk.batches == [list(range(12)), [12]]


def test_a_single_transaction_needs_no_thread_and_a_closed_lane_is_an_error() -> None:
    async def story() -> None:
        lane = ThreadLane("admit", 1, None)
        lane.close()  # nothing can be handed over any more
        intake = Intake(lane, Desk().admit)
        assert await intake.submit(RAWS[:1], True) == 1
        with pytest.raises(RuntimeError):
            await intake.submit(RAWS, True)

    asyncio.run(story())


def test_a_failure_at_the_desk_reaches_all_who_wait() -> None:
    def admit(arrivals: list[Arrival[int]], decoded: Decoded) -> None:
        arrivals[0].answer(7)
        raise OSError("no room")

    async def story() -> list[int | BaseException]:
        intake = Intake(InlineLanes().admit, admit)
        return await asyncio.gather(*(intake.submit([raw], True) for raw in RAWS[:3]), return_exceptions=True)

    answers = asyncio.run(story())
    assert answers[0] == 7
    assert [str(answer) for answer in answers[1:]] == ["no room", "no room"]


def test_bytes_that_are_no_transaction_come_with_a_reason() -> None:
    desk = Desk()

    async def story() -> None:
        await Intake(InlineLanes().admit, desk.admit).submit([b"\xc0"], False)

    asyncio.run(story())
    assert desk.batches == [["input too short"]]

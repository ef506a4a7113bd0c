"""Tests large consensus messages, and messages that arrive after them."""

from __future__ import annotations

import asyncio

import pytest

from ophion.consensus.bft.messages import RawMessage
from ophion.primitives.types import Address
from ophion.producer.message_intake import MAX_INLINE_BYTES, MAX_WAITING, MAX_WAITING_BYTES, MessageIntake

LARGE = bytes(MAX_INLINE_BYTES + 1)
A, B = b"a" * 20, b"b" * 20


class Decoder:
    """A decoder that records messages. It records large messages only after `free` is set."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.log: list[tuple[bytes | None, int]] = []
        self.intake = MessageIntake(self.take, self.take_large)

    def take(self, raw: RawMessage, peer: Address | None) -> None:
        self.log.append((peer, raw.code))

    async def take_large(self, raw: RawMessage, peer: Address | None) -> None:
        await self.free.wait()
        if raw.code == 99:
            raise ZeroDivisionError
        self.take(raw, peer)

    def come(self, tasks: asyncio.TaskGroup, code: int, data: bytes, peer: bytes) -> bool:
        raw = RawMessage(code, data)
        if self.intake.must_wait(raw, peer):
            return self.intake.put(raw, peer, tasks)
        self.take(raw, peer)
        return True


def test_messages_of_one_peer_keep_their_order_and_others_do_not_wait() -> None:
    async def story() -> None:
        decoder = Decoder()
        async with asyncio.TaskGroup() as tasks:
            for code, data, peer in ((1, LARGE, A), (2, b"vote", A), (3, b"vote", B), (4, LARGE, A), (5, b"vote", A)):
                assert decoder.come(tasks, code, data, peer)
            await asyncio.sleep(0)
            assert decoder.log == [(B, 3)]
            assert len(decoder.intake) == 4
            decoder.free.set()
        assert decoder.log == [(B, 3), (A, 1), (A, 2), (A, 4), (A, 5)]
        assert not decoder.intake.must_wait(RawMessage(0, b"vote"), A)

    asyncio.run(story())


def test_the_messages_of_one_peer_are_bounded() -> None:
    async def story() -> None:
        decoder = Decoder()
        async with asyncio.TaskGroup() as tasks:
            assert decoder.come(tasks, 1, bytes(MAX_WAITING_BYTES), A)
            assert not decoder.come(tasks, 2, b"x", A)
            assert decoder.come(tasks, 3, LARGE, B), "another peer has its own"
            for _ in range(MAX_WAITING - 1):
                assert decoder.come(tasks, 4, b"", B)
            assert not decoder.come(tasks, 5, b"", B)
            decoder.free.set()

    asyncio.run(story())


def test_an_unexpected_error_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        decoder = Decoder()
        decoder.free.set()
        async with asyncio.TaskGroup() as tasks:
            decoder.come(tasks, 99, LARGE, A)
            decoder.come(tasks, 2, b"vote", A)
        assert decoder.log == [(A, 2)]

    asyncio.run(story())
    assert "cannot handle consensus message" in caplog.text


def test_after_a_stop_a_peer_begins_anew() -> None:
    async def story() -> None:
        decoder = Decoder()
        with pytest.raises(asyncio.CancelledError):  # noqa: PT012
            async with asyncio.TaskGroup() as tasks:
                decoder.come(tasks, 1, LARGE, A)
                raise asyncio.CancelledError
        decoder.intake.clear()
        decoder.free.set()
        async with asyncio.TaskGroup() as tasks:
            decoder.come(tasks, 2, LARGE, A)
        assert decoder.log == [(A, 2)]

    asyncio.run(story())

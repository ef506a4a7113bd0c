"""Tests duplicates and messages of later heights (consensus.md 2.8)."""

from __future__ import annotations

from ophion.consensus.bft.events import MessageReceived
from ophion.consensus.bft.message_buffer import FutureMessages, MessageLimits, RecentlySeen
from ophion.consensus.bft.messages import Prepare, RawMessage

VALIDATOR, LIAR = b"\x01" * 20, b"\x02" * 20


def received(height: int, number: int = 0) -> MessageReceived:
    return MessageReceived(Prepare(height, 0, bytes(32), bytes(20), number.to_bytes(4, "big")), None)


def test_the_defaults_are_those_of_the_genesis_file() -> None:
    assert MessageLimits() == MessageLimits(1000, 100, 1000, 10, 1000)


def test_a_fingerprint_is_known_until_enough_others_have_come() -> None:
    seen = RecentlySeen(3)
    assert [seen.add(bytes((number,))) for number in (1, 2, 1, 3, 4, 1)] == [True, True, False, True, True, True]
    assert b"\x01" in seen
    assert b"\x02" not in seen
    assert len(seen) == 3


def test_a_limit_of_zero_remembers_nothing() -> None:
    seen = RecentlySeen(0)
    assert seen.add(b"a")
    assert seen.add(b"a")


def test_messages_come_back_in_the_order_of_arrival() -> None:
    future = FutureMessages(10, 10)
    messages = [received(6, number) for number in range(3)]
    for message in messages:
        assert future.add(message, 5)
    assert future.take(6) == messages
    assert len(future) == 0


def test_distance_is_bounded_on_both_sides() -> None:
    future = FutureMessages(10, 2)
    assert [future.add(received(height), 5) for height in (4, 5, 6, 7, 8)] == [False, False, True, True, False]


def test_lower_heights_are_forgotten_with_time() -> None:
    future = FutureMessages(10, 10)
    future.add(received(6), 5)
    future.add(received(8), 5)
    assert future.take(7) == []
    assert len(future) == 1


def test_over_the_limit_the_highest_height_goes_as_a_whole() -> None:
    future = FutureMessages(3, 10)
    for height in (6, 9, 9):
        future.add(received(height), 5)
    assert not future.add(received(9), 5)
    assert len(future) == 1
    assert future.add(received(7), 5)


def test_with_one_height_the_oldest_message_goes() -> None:
    future = FutureMessages(2, 10)
    for number in range(4):
        assert future.add(received(6, number), 5)
    assert [message.message.fingerprint[-1] for message in future.take(6)] == [2, 3]


def test_a_limit_of_zero_keeps_nothing() -> None:
    future = FutureMessages(0, 10)
    assert not future.add(received(6), 5)
    assert len(future) == 0


def test_the_bytes_that_are_kept_are_bounded_too() -> None:
    future = FutureMessages(1000, 10, max_bytes=1000)
    large = lambda height, number: MessageReceived(  # noqa: E731
        Prepare(height, 0, bytes(32), bytes(20), number.to_bytes(4, "big"), RawMessage(0x13, bytes(400))), None
    )
    assert future.add(large(6, 1), 5)
    assert future.add(large(7, 2), 5)
    assert not future.add(large(8, 3), 5)
    assert future.add(large(6, 4), 5), "what is needed last makes room"
    assert len(future) == 2
    assert future.add(large(6, 5), 5)
    assert [one.message.fingerprint[-1] for one in future.take(6)] == [4, 5]
    assert all(future.add(large(9, number), 8) for number in (6, 7)), "what was taken counts no longer"


def test_a_flood_of_unknown_authors_drops_no_message_of_a_validator() -> None:
    future = FutureMessages(10, 10)
    votes = [received(6, 1), received(7, 2)]
    assert future.add(votes[0], 5, VALIDATOR)
    assert future.add(votes[1], 5, VALIDATOR)
    for number in range(100, 200):
        assert future.add(received(6, number), 5)
    assert len(future) == 10
    assert future.take(6)[0] == votes[0]
    assert future.take(7) == [votes[1]]


def test_a_flood_of_one_validator_drops_its_own_messages() -> None:
    future = FutureMessages(10, 10, max_bytes=10_000)
    vote = received(7, 1)
    assert future.add(vote, 5, VALIDATOR)
    for number in range(100, 200):
        assert future.add(received(6, number), 5, LIAR)
    large = Prepare(6, 0, bytes(32), bytes(20), b"large", RawMessage(0x13, bytes(9_999)))
    assert future.add(MessageReceived(large, None), 5, LIAR)
    assert len(future) <= 10
    future.take(6)
    assert future.take(7) == [vote]
    assert len(future) == 0


def test_messages_of_several_authors_come_back_in_the_order_of_arrival() -> None:
    future = FutureMessages(10, 10)
    messages = [received(6, number) for number in range(6)]
    for message, author in zip(messages, (VALIDATOR, None, LIAR) * 2, strict=True):
        assert future.add(message, 5, author)
    assert future.take(6) == messages


def test_a_larger_limit_keeps_more_fingerprints_and_a_smaller_one_evicts_the_oldest() -> None:
    seen = RecentlySeen(2)
    seen.resize(3)
    assert all(seen.add(bytes([number])) for number in range(3))
    assert bytes([0]) in seen
    seen.resize(1)
    assert len(seen) == 1
    assert bytes([2]) in seen

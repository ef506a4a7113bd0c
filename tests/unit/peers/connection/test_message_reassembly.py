from __future__ import annotations

from ophion.peers.connection.message_reassembly import LARGE, MAX_PARTIAL_BYTES, MessageReassembly


def test_the_one_that_takes_longest_goes_when_there_is_too_much() -> None:
    assembly: MessageReassembly[str] = MessageReassembly()
    for number in range(MAX_PARTIAL_BYTES // LARGE):
        assert assembly.record(f"sender {number}", LARGE) is None
    assert assembly.total == MAX_PARTIAL_BYTES
    assert assembly.record("one more", LARGE) == "sender 0"
    assert assembly.record("sender 0", 0) is None
    assert assembly.total == MAX_PARTIAL_BYTES
    assert assembly.record("sender 1", 2 * LARGE) == "sender 1", "it is older, and grows"


def test_short_parts_and_whole_messages_do_not_count() -> None:
    assembly: MessageReassembly[str] = MessageReassembly()
    for number in range(1000):
        assert assembly.record(f"short {number}", LARGE - 1) is None
    assert assembly.total == 0
    assert assembly.record("large", 16 * LARGE) is None
    assert assembly.record("large", 0) is None
    assert assembly.total == 0
    assert not assembly._sizes

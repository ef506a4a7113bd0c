from __future__ import annotations

from ophion.peers.connection.send_queue import BATCH, SendQueue


def test_messages_leave_in_order_in_batches() -> None:
    outbox = SendQueue()
    for number in range(10):
        outbox.put(number, bytes(BATCH // 4))
    assert len(outbox) == 10
    assert outbox.size > 10 * BATCH // 4
    batches = []
    while outbox:
        batches.append([message_id for message_id, _ in outbox.take()])
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert outbox.size == 0
    assert outbox.take() == []


def test_a_large_message_goes_alone() -> None:
    outbox = SendQueue()
    outbox.put(1, bytes(3 * BATCH))
    outbox.put(2, b"")
    assert [len(payload) for _, payload in outbox.take()] == [3 * BATCH]
    assert outbox.take() == [(2, b"")]


def test_empty_messages_are_not_free() -> None:
    outbox = SendQueue()
    for _ in range(1000):
        outbox.put(2, b"")
    assert outbox.size >= 64_000
    outbox.clear()
    assert (len(outbox), outbox.size) == (0, 0)

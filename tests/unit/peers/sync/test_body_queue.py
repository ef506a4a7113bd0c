"""Tests the queue of blocks that wait for their bodies."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ophion.native.transactions import Body
from ophion.peers.eth.response_validation import SizedBody
from ophion.peers.sync.body_queue import MAX_BODIES, REQUEST_BYTES, BodyQueue
from ophion.primitives.header import HashedHeader
from ophion.testing.bft_chain import sealed_blocks
from ophion.testing.signing import DEV_KEYS, legacy_transaction

EMPTY = [header for header, _ in sealed_blocks("ibft2", 1, 300)]
BODY = Body.of([legacy_transaction(DEV_KEYS[0], 0)], [], None)
FULL = [
    HashedHeader(replace(header.header, transactions_root=BODY.transactions_root, gas_used=21_000), header.hash)
    for header in EMPTY
]
FOUND = SizedBody(BODY, 120)


def test_empty_blocks_need_no_request() -> None:
    queue = BodyQueue()
    queue.add(EMPTY[:5])
    assert queue.first_missing is None
    assert [block.header for block in queue.take_ready(3, 1000)] == EMPTY[:3]
    assert [block.header for block in queue.take_ready(3, 1000)] == EMPTY[3:5]
    assert queue.held_bytes == 0


def test_blocks_are_ready_in_order() -> None:
    queue = BodyQueue()
    queue.add([EMPTY[0], FULL[1], EMPTY[2], FULL[3]])
    assert queue.first_missing == FULL[1]
    slots = queue.next_request(below=1000)
    assert [slot.header for slot in slots] == [FULL[1], FULL[3]]
    assert queue.next_request(below=1000) == []
    assert len(queue.take_ready(10, 1000)) == 1
    queue.received(slots, [FOUND, FOUND])
    assert [block.header for block in queue.take_ready(10, 1000)] == [FULL[1], EMPTY[2], FULL[3]]
    assert (len(queue), queue.held_bytes) == (0, 0)


def test_a_batch_ends_with_its_transactions() -> None:
    queue = BodyQueue()
    queue.add(FULL[:10])
    queue.received(queue.next_request(1000), [FOUND] * 10)
    assert [len(queue.take_ready(100, 4)) for _ in range(3)] == [4, 4, 2]


def test_a_request_asks_for_what_the_peer_has() -> None:
    queue = BodyQueue()
    queue.add(FULL[:10])
    assert len(queue.next_request(below=FULL[3].number)) == 4
    assert queue.next_request(below=FULL[3].number) == []


def test_a_request_is_bounded_in_blocks_and_in_expected_bytes() -> None:
    queue = BodyQueue()
    queue.add(FULL)
    assert len(queue.next_request(10_000)) == MAX_BODIES
    heavy = [HashedHeader(replace(header.header, gas_used=20_000_000), header.hash) for header in FULL[:50]]
    queue = BodyQueue()
    queue.add(heavy)
    slots = queue.next_request(10_000)
    assert 1 < len(slots) < 10
    assert queue.held_bytes <= REQUEST_BYTES
    queue = BodyQueue()
    queue.add([HashedHeader(replace(FULL[0].header, gas_used=2**60), FULL[0].hash)])
    assert len(queue.next_request(10_000)) == 1, "a request has at least one block"


@given(st.integers())
def test_blocks_are_ready_in_order_for_any_responses(seed: int) -> None:
    random = Random(seed)
    headers = [random.choice((EMPTY, FULL))[number] for number in range(200)]
    queue = BodyQueue()
    queue.add(headers)
    flying, out = [], []
    while len(out) < len(headers):
        while len(flying) < 3 and queue.first_missing is not None:
            flying.append(queue.next_request(random.randint(queue.first_missing.number, 300)))
        if flying:
            slots = flying.pop(random.randrange(len(flying)))
            queue.received(slots, [FOUND] * random.randint(0, len(slots)))
        out += queue.take_ready(random.randint(1, 50), 1000)
    assert [block.header for block in out] == headers
    assert queue.held_bytes == 0

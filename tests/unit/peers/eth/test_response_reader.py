"""Tests responses to requests, read from a real chain with a side branch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ophion.chain.block import decode_block, encode_block
from ophion.chain.events import ChainBlock
from ophion.native.crypto import keccak256
from ophion.native.tries import ordered_root
from ophion.native.wire import body_rlp
from ophion.peers.eth import response_reader as module
from ophion.peers.eth.messages import GetHeaders
from ophion.peers.eth.response_reader import MAX_HEADERS, ResponseReader
from ophion.primitives import rlp
from ophion.primitives.header import Header
from ophion.runtime.clock import ManualClock
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction

LENGTH, FORK = 30, 20
"""Length of the chain, and the last common block with the side branch."""


@dataclass(frozen=True)
class Served:
    node: TestCore
    answers: ResponseReader
    side: list[bytes]
    """Hashes of the side branch, from block FORK + 1 on."""

    def numbers(self, request: GetHeaders) -> list[int]:
        return [Header.decode(item).number for item in rlp.split_list(self.answers.headers(request), 1024)]

    def hashes(self, request: GetHeaders) -> list[bytes]:
        return [keccak256(item) for item in rlp.split_list(self.answers.headers(request), 1024)]

    def canonical(self, number: int) -> bytes:
        found = self.node.chain.store.canonical_hash(number)
        assert found is not None
        return found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path: Path = tmp_path_factory.mktemp("answers")
    other_path: Path = tmp_path_factory.mktemp("other")
    clock = ManualClock()
    with open_core(path, clock=clock) as node, open_core(other_path, clock=clock) as other:
        side: list[bytes] = []

        async def scenario() -> None:
            nonce = 0
            for number in range(1, LENGTH + 1):
                raws = []
                for _ in range(number % 4):
                    make = fee_transaction if nonce % 2 else legacy_transaction
                    raws.append(make(DEV_KEYS[1], nonce))
                    nonce += 1
                header, _ = await node.mine(*raws)
                if number <= FORK:
                    await other.core.importer.import_block(block(node, header.hash))
            for _ in range(3):
                header = await other.seal(7.0)
                side.append(header.hash)
                await node.core.importer.import_block(block(other, header.hash))

        asyncio.run(scenario())
        yield Served(node, ResponseReader(node.chain, node.pool), side)


def block(node: TestCore, hash: bytes) -> ChainBlock:
    raw = node.chain.store.block(hash)
    assert raw is not None
    return decode_block(raw, node.chain.engine)


def test_headers_by_number(served: Served) -> None:
    assert served.numbers(GetHeaders(3, 4)) == [3, 4, 5, 6]
    assert served.numbers(GetHeaders(3, 4, skip=2)) == [3, 6, 9, 12]
    assert served.numbers(GetHeaders(3, 9, reverse=True)) == [3, 2, 1, 0]
    assert served.numbers(GetHeaders(28, 9)) == [28, 29, 30]
    assert served.numbers(GetHeaders(29, 9, skip=8, reverse=True)) == [29, 20, 11, 2]
    assert served.numbers(GetHeaders(31, 5)) == []
    assert served.numbers(GetHeaders(31, 5, reverse=True)) == []
    assert served.numbers(GetHeaders(3, 0)) == []


def test_headers_by_hash_on_the_chain(served: Served) -> None:
    start = served.canonical(5)
    assert served.numbers(GetHeaders(start, 3)) == [5, 6, 7]
    assert served.numbers(GetHeaders(start, 3, skip=1, reverse=True)) == [5, 3, 1]
    assert served.numbers(GetHeaders(bytes(32), 3)) == []


def test_headers_of_a_side_branch(served: Served) -> None:
    last = served.side[-1]
    assert served.hashes(GetHeaders(last, 5)) == [last], "descendants on a side branch are not served"
    back = served.hashes(GetHeaders(last, 6, reverse=True))
    assert back == [*reversed(served.side), *(served.canonical(number) for number in (20, 19, 18))]
    spaced = served.hashes(GetHeaders(last, 5, skip=1, reverse=True))
    assert spaced == [served.side[2], served.side[0], served.canonical(19), served.canonical(17), served.canonical(15)]
    far = served.hashes(GetHeaders(last, 9, skip=9, reverse=True))
    assert far == [last, served.canonical(13), served.canonical(3)]


def test_numbers_that_would_overflow_are_harmless(served: Served) -> None:
    largest = 2**64 - 1
    assert served.numbers(GetHeaders(largest, largest)) == []
    assert served.numbers(GetHeaders(0, largest, skip=largest)) == [0]
    assert served.numbers(GetHeaders(30, 5, skip=largest, reverse=True)) == [30]
    assert served.numbers(GetHeaders(largest, 5, skip=largest, reverse=True)) == []
    assert served.hashes(GetHeaders(served.side[-1], 5, skip=largest, reverse=True)) == [served.side[-1]]
    assert MAX_HEADERS == 512
    assert len(served.numbers(GetHeaders(0, largest))) == LENGTH + 1


def test_bodies_are_a_prefix_of_what_was_asked_for(served: Served) -> None:
    hashes = [served.canonical(number) for number in (1, 2, 3)]
    found = rlp.split_list(served.answers.bodies(hashes), 1024)
    assert found == [body_rlp(encode_block(block(served.node, hash))) for hash in hashes]
    with_gap = [hashes[0], bytes(32), hashes[1]]
    assert rlp.split_list(served.answers.bodies(with_gap), 1024) == found[:1]
    assert served.answers.bodies([bytes(32), *hashes]) == rlp.EMPTY_LIST
    assert served.answers.bodies([]) == rlp.EMPTY_LIST
    assert len(rlp.split_list(served.answers.bodies([served.side[0]]), 1024)) == 1


def test_answers_stop_after_some_bytes_with_one_item_at_least(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SOFT_LIMIT", 1)
    assert served.numbers(GetHeaders(3, 4)) == [3]
    assert len(rlp.split_list(served.answers.bodies([served.canonical(number) for number in (1, 2, 3)]), 1024)) == 1


def test_receipts_are_those_of_the_receipts_root(served: Served) -> None:
    hashes = [served.canonical(number) for number in (1, 4, 3)]
    lists = [
        rlp.split_list(item, 1024) for item in rlp.split_list(served.answers.receipts(hashes, with_bloom=True), 1024)
    ]
    assert [len(receipts) for receipts in lists] == [1, 0, 3]
    for hash, receipts in zip(hashes, lists, strict=True):
        raw = [item if item[0] >= 0xC0 else rlp.decode(item) for item in receipts]
        header = served.node.chain.header(hash)
        assert header is not None
        assert ordered_root([item for item in raw if isinstance(item, bytes)]) == header.header.receipts_root
    assert served.answers.receipts([bytes(32), hashes[0]], with_bloom=True) == rlp.EMPTY_LIST


def test_receipts_without_bloom_have_their_type_in_front(served: Served) -> None:
    (block_receipts,) = rlp.decode_list(served.answers.receipts([served.canonical(3)], with_bloom=False))
    assert isinstance(block_receipts, list)
    kinds = [receipt[0] for receipt in block_receipts if isinstance(receipt, list)]
    assert kinds == [b"\x02", b"", b"\x02"]
    assert all(isinstance(receipt, list) and len(receipt) == 4 for receipt in block_receipts)


def test_pooled_transactions_keep_their_order_and_leave_out_what_is_unknown(tmp_path: Path) -> None:
    with open_core(tmp_path) as node:

        async def scenario() -> None:
            raws = [legacy_transaction(DEV_KEYS[1], 0), fee_transaction(DEV_KEYS[2], 0)]
            first, second = await node.send(*raws)
            found = rlp.decode_list(ResponseReader(node.chain, node.pool).pooled([second, bytes(32), first]))
            assert found == [raws[1], rlp.decode(raws[0])]
            assert ResponseReader(node.chain, node.pool).pooled([bytes(32)]) == rlp.EMPTY_LIST

        asyncio.run(scenario())


@settings(max_examples=60, deadline=None)
@given(
    start=st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1)),
    limit=st.integers(0, 50),
    skip=st.one_of(st.integers(0, 12), st.integers(0, 2**64 - 1)),
    reverse=st.booleans(),
)
def test_headers_are_those_that_arithmetic_names(
    served: Served, start: int, limit: int, skip: int, reverse: bool
) -> None:
    step = -(skip + 1) if reverse else skip + 1
    expected = [start + index * step for index in range(limit)]
    in_chain = [number for number in expected if 0 <= number <= LENGTH] if start <= LENGTH else []
    assert served.numbers(GetHeaders(start, limit, skip, reverse)) == in_chain

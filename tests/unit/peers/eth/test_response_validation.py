"""Tests the validation of responses against their requests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ophion.chain.block import decode_block
from ophion.chain.events import ChainBlock
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.extra_data import ExtraForm
from ophion.consensus.engine import Vote
from ophion.consensus.engine_factory import engine_for
from ophion.errors import DecodeError, InvalidHeader
from ophion.native.crypto import bft_block_hash
from ophion.native.exceptions import NativeError
from ophion.native.wire import header_fields
from ophion.peers.disconnect_reasons import PeerMisbehaved
from ophion.peers.eth.messages import GetHeaders
from ophion.peers.eth.response_reader import ResponseReader
from ophion.peers.eth.response_validation import read_bodies, read_headers, read_receipts, read_transactions, wrapped
from ophion.primitives import rlp
from ophion.primitives.header import Header
from ophion.primitives.rlp import RlpError
from ophion.testing.bft_chain import sealed_blocks
from ophion.testing.busy_chain import genesis_text
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestCore]:
    with open_core(tmp_path_factory.mktemp("exchanges")) as node:

        async def scenario() -> None:
            for number in range(10):
                await node.mine(
                    legacy_transaction(DEV_KEYS[1], 2 * number), fee_transaction(DEV_KEYS[1], 2 * number + 1)
                )

        asyncio.run(scenario())
        yield node


def headers_of(node: TestCore, request: GetHeaders) -> list[bytes]:
    return rlp.split_list(ResponseReader(node.chain, node.pool).headers(request), 1024)


def blocks_of(node: TestCore, *numbers: int) -> list[ChainBlock]:
    found = []
    for number in numbers:
        raw = node.chain.store.block(node.chain.store.canonical_hash(number) or b"")
        assert raw is not None
        found.append(decode_block(raw, node.chain.engine))
    return found


@pytest.mark.parametrize(
    "request_", [GetHeaders(2, 5), GetHeaders(9, 4, reverse=True), GetHeaders(1, 3, skip=2), GetHeaders(8, 9)]
)
def test_headers_that_were_asked_for_are_taken(node: TestCore, request_: GetHeaders) -> None:
    items = headers_of(node, request_)
    found = read_headers(rlp.list_of(items), request_, node.chain.engine)
    assert [header.header.encode() for header in found] == items
    assert read_headers(rlp.EMPTY_LIST, request_, node.chain.engine) == []
    fewer = read_headers(rlp.list_of(items[:2]), request_, node.chain.engine)
    assert [header.number for header in fewer] == [header.number for header in found[:2]]


@pytest.mark.parametrize("protocol", ["qbft", "ibft2"])
def test_the_fast_path_of_header_hashes(protocol: str) -> None:
    """`header_fields` and `bft_block_hash` agree with `Header.decode` and `BftEngine.hashed`, or leave the header to
    them.
    """
    engine = engine_for(parse_genesis(genesis_text(protocol)).spec)
    assert isinstance(engine, BftEngine)
    codec = engine.protocol(1)
    raws = [header.header.encode() for header, _ in sealed_blocks(protocol, 4, 20)]
    header = Header.decode(raws[3])
    extra = codec.decode_extra(header.extra_data)
    for vote, round_number in ((None, 0), (None, 300), (Vote(bytes(20), True), 0), (Vote(b"\x07" * 20, False), 5)):
        changed = codec.encode_extra(replace(extra, vote=vote, round=round_number), ExtraForm.FULL)
        raws.append(replace(header, extra_data=changed).encode())
        assert (bft_block_hash(raws[-1], protocol == "qbft") is None) == (vote is not None)
    late = {"base_fee_per_gas": 2**70, "withdrawals_root": bytes(32)}
    raws.append(replace(header, **late).encode())
    raws.append(replace(header, **late, blob_gas_used=0, excess_blob_gas=2**63, requests_hash=None).encode())
    for raw in raws:
        slow = Header.decode(raw)
        assert header_fields(raw) is not None
        assert read_headers(rlp.list_of([raw]), GetHeaders(slow.number, 1), engine) == [engine.hashed(slow)]
    for raw in raws[:8]:
        for at in range(len(raw)):
            for byte in (raw[at] ^ 1, 0, 0x80):
                wrong = raw[:at] + bytes([byte]) + raw[at + 1 :]
                fields = header_fields(wrong)
                try:
                    slow = Header.decode(wrong)
                except RlpError:
                    assert fields is None
                    continue
                assert fields is None or Header(*fields) == slow  # type: ignore[arg-type]
                if slow.number == 0:
                    continue  # the genesis header is hashed in full
                fast = bft_block_hash(wrong, protocol == "qbft")
                try:
                    assert fast in (None, engine.hashed(slow).hash)
                except InvalidHeader:
                    # only round and seals may be malformed, which the hash does not cover
                    assert fast is None or len(rlp.split_list(slow.extra_data, 5)) == 5


def test_headers_that_do_not_follow_each_other_are_a_breach(node: TestCore) -> None:
    items = headers_of(node, GetHeaders(1, 6))
    request = GetHeaders(1, 6)
    for wrong in (items[1:], [items[0], items[2]], [items[0], items[0]], list(reversed(items)), [*items, items[5]]):
        with pytest.raises((PeerMisbehaved, DecodeError)):
            read_headers(rlp.list_of(wrong), request, node.chain.engine)
    with pytest.raises(PeerMisbehaved, match="not the requested one"):
        read_headers(rlp.list_of(items[:1]), GetHeaders(bytes(32), 1), node.chain.engine)


def test_a_header_of_the_right_number_that_does_not_link_is_a_breach(node: TestCore) -> None:
    items = headers_of(node, GetHeaders(1, 3))
    forged = rlp.decode_list(items[1])
    forged[12] = b"forged"
    wrong = [items[0], rlp.encode(forged), items[2]]
    with pytest.raises(PeerMisbehaved, match="does not follow"):
        read_headers(rlp.list_of(wrong), GetHeaders(1, 3), node.chain.engine)


def test_bodies_are_taken_as_far_as_they_belong(node: TestCore) -> None:
    blocks = blocks_of(node, 1, 2, 3)
    headers = [block.header for block in blocks]
    answer = rlp.split_list(ResponseReader(node.chain, node.pool).bodies([header.hash for header in headers]), 1024)
    found = read_bodies(rlp.list_of(answer), headers)
    assert [one.body.transactions_root for one in found] == [header.header.transactions_root for header in headers]
    assert [one.size for one in found] == [len(item) for item in answer]
    assert found[0].body.transactions[0].sender == DEV_KEYS[1].address
    assert len(read_bodies(rlp.list_of([answer[0], answer[2], answer[1]]), headers)) == 1
    assert read_bodies(rlp.EMPTY_LIST, headers) == []
    with pytest.raises(PeerMisbehaved, match="a body that was not requested"):
        read_bodies(rlp.list_of([answer[0], answer[2]]), headers[:2])
    with pytest.raises(DecodeError, match="more than 2 items"):
        read_bodies(rlp.list_of(answer), headers[:2])


@pytest.mark.parametrize("has_blooms", [True, False])
def test_receipts_have_the_root_of_their_header(node: TestCore, has_blooms: bool) -> None:
    headers = [block.header for block in blocks_of(node, 1, 2, 3)]
    answer = ResponseReader(node.chain, node.pool).receipts([header.hash for header in headers], has_blooms)
    found = read_receipts(answer, headers, has_blooms)
    assert [len(receipts) for receipts in found] == [2, 2, 2]
    assert [receipts.root for receipts in found] == [header.header.receipts_root for header in headers]
    items = rlp.split_list(answer, 3)
    assert len(read_receipts(rlp.list_of(items[:2]), headers, has_blooms)) == 2
    with pytest.raises(PeerMisbehaved, match="another root"):
        read_receipts(rlp.list_of([rlp.list_of(rlp.split_list(items[0], 2)[::-1])]), headers, has_blooms)
    with pytest.raises((DecodeError, PeerMisbehaved)):
        read_receipts(answer, headers, not has_blooms)
    with pytest.raises(DecodeError, match="more than 2 items"):
        read_receipts(answer, headers[:2], has_blooms)


def test_transactions_come_as_they_stand_in_a_block() -> None:
    raws = [legacy_transaction(DEV_KEYS[1], 0), fee_transaction(DEV_KEYS[1], 1)]
    assert read_transactions(rlp.list_of([wrapped(raw) for raw in raws])) == raws
    with pytest.raises(DecodeError):
        read_transactions(rlp.list_of([b"\x80"]))


items = st.recursive(st.binary(max_size=40), lambda inner: st.lists(inner, max_size=5), max_leaves=20)


@given(st.one_of(st.binary(max_size=200), items.map(rlp.encode)))
def test_no_bytes_break_the_readers(node: TestCore, data: bytes) -> None:
    headers = [block.header for block in blocks_of(node, 1, 2)]
    for read in (
        lambda: read_headers(data, GetHeaders(1, 5), node.chain.engine),
        lambda: read_bodies(data, headers),
        lambda: read_transactions(data),
        lambda: read_receipts(data, headers, True),
        lambda: read_receipts(data, headers, False),
    ):
        try:
            read()
        except (DecodeError, NativeError, PeerMisbehaved):
            continue


def test_a_header_longer_than_any_network_needs_is_not_read(node: TestCore) -> None:
    with pytest.raises(PeerMisbehaved, match="a header of 200003 bytes"):
        read_headers(rlp.list_of([rlp.encode_bytes(bytes(199_999))]), GetHeaders(1, 1), node.chain.engine)

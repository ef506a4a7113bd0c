"""Tests the request queue of a peer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.eth.field_decoding import enclosed, encode_hashes, with_id
from ophion.peers.eth.messages import Code, GetHeaders
from ophion.peers.eth.request_handler import ANSWER_S, MAX_UNREAD_BYTES, MAX_WAITING
from ophion.primitives import rlp
from ophion.testing.eth_node import EthNode
from ophion.testing.links import PeerLink, connect
from tests.unit.peers.eth.scenarios import run_nodes


def answers(wire: PeerLink, code: Code) -> list[tuple[int, int]]:
    """Return request id and number of items of each response that one end of the connection has sent."""
    found = [with_id(payload, "answer") for sent, payload in wire.sent if sent == code]
    return [(request_id, len(rlp.split_list(body, 1024))) for request_id, body in found]


def test_requests_are_answered_each_with_its_id_zero_and_the_same_twice_included(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        for _ in range(20):
            await one.node.seal()
        wire, peer = connect(one.eth, other.eth)
        await asyncio.sleep(3)
        before = len(answers(wire, Code.BLOCK_HEADERS))
        for request_id, limit in ((0, 1), (9, 12), (9, 3), (2**64 - 1, 20)):
            peer.other.deliver(Code.GET_BLOCK_HEADERS, GetHeaders(1, limit).encode(request_id))  # type: ignore[union-attr]
        await asyncio.sleep(1)
        assert sorted(answers(wire, Code.BLOCK_HEADERS)[before:]) == [(0, 1), (9, 3), (9, 12), (2**64 - 1, 20)]
        assert wire.ended is None

    run_nodes(tmp_path, 2, scenario)


def test_bodies_receipts_and_pooled_transactions_are_served(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        hashes = [(await one.node.seal()).hash for _ in range(3)]
        wire, _ = connect(one.eth, other.eth)
        await asyncio.sleep(3)
        for code in (Code.GET_BLOCK_BODIES, Code.GET_RECEIPTS, Code.GET_POOLED_TRANSACTIONS):
            wire.deliver(code, enclosed(77, encode_hashes(hashes)))
        await asyncio.sleep(1)
        assert answers(wire, Code.BLOCK_BODIES)[-1] == (77, 3)
        assert answers(wire, Code.RECEIPTS) == [(77, 3)]
        assert answers(wire, Code.POOLED_TRANSACTIONS) == [(77, 0)]

    run_nodes(tmp_path, 2, scenario)


def test_a_peer_that_floods_requests_is_disconnected(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        wire, _ = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        for request_id in range(MAX_WAITING + 2):
            wire.deliver(Code.GET_BLOCK_BODIES, enclosed(request_id, encode_hashes([bytes(32)])))
        assert wire.ended is not None
        assert wire.ended[0] is DisconnectReason.BREACH

    run_nodes(tmp_path, 2, scenario)


def test_a_late_response_is_sent_empty(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        hashes = [(await one.node.seal()).hash for _ in range(3)]
        wire, _ = connect(one.eth, other.eth)
        await asyncio.sleep(3)
        wire.deliver(Code.GET_BLOCK_BODIES, enclosed(5, encode_hashes(hashes)))
        # advance the clock beyond the request timeout of other clients, as if the event loop were blocked
        one.node.clock.advance(ANSWER_S + 1)
        await asyncio.sleep(1)
        assert answers(wire, Code.BLOCK_BODIES)[-1] == (5, 0)

    run_nodes(tmp_path, 2, scenario)


def test_malformed_requests_end_the_connection(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        for code in (Code.GET_BLOCK_HEADERS, Code.GET_BLOCK_BODIES, Code.GET_RECEIPTS, Code.GET_POOLED_TRANSACTIONS):
            wire, _ = connect(one.eth, other.eth)
            await asyncio.sleep(0.1)
            wire.deliver(code, enclosed(1, b"\xc1\x05"))
            assert wire.ended is not None, code
            assert wire.ended[0] is DisconnectReason.BREACH
            await asyncio.sleep(0.1)

    run_nodes(tmp_path, 2, scenario)


def test_responses_wait_until_a_slow_reader_has_read(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        hashes = [(await one.node.seal()).hash]
        wire, _ = connect(one.eth, other.eth)
        await asyncio.sleep(3)
        wire.intercept = lambda code, payload: None  # drop the responses, because the other node has not requested them
        wire.waiting_bytes = MAX_UNREAD_BYTES + 1
        for request_id in (7, 8):
            wire.deliver(Code.GET_BLOCK_BODIES, enclosed(request_id, encode_hashes(hashes)))
        wire.deliver(Code.GET_POOLED_TRANSACTIONS, enclosed(9, encode_hashes(hashes)))
        before = answers(wire, Code.BLOCK_BODIES)
        await asyncio.sleep(1)
        assert answers(wire, Code.BLOCK_BODIES) == before
        wire.waiting_bytes = 0
        await asyncio.sleep(1)
        assert answers(wire, Code.BLOCK_BODIES)[len(before) :] == [(7, 1), (8, 1)]
        wire.waiting_bytes = MAX_UNREAD_BYTES + 1
        wire.deliver(Code.GET_BLOCK_BODIES, enclosed(10, encode_hashes(hashes)))
        await asyncio.sleep(2 * ANSWER_S)
        assert answers(wire, Code.BLOCK_BODIES)[-1] == (10, 0), "a late response is empty"

    run_nodes(tmp_path, 2, scenario)

"""Tests `EthPeer`: the Status exchange and the checks of messages."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.eth.field_decoding import enclosed
from ophion.peers.eth.fork_id import ForkId
from ophion.peers.eth.messages import MAX_MESSAGE, BlockRange, Code, GetHeaders, Status
from ophion.peers.eth.peer import MAX_TIMEOUTS, MAX_USELESS, EthPeer
from ophion.peers.eth.peer_head import PeerHead
from ophion.peers.eth.requests import RequestFailed, RequestTimedOut
from ophion.peers.eth.versions import ETH_68, ETH_69
from ophion.primitives import rlp
from ophion.testing.bft_chain import sealed_blocks
from ophion.testing.eth_node import EthNode
from ophion.testing.links import PeerLink, connect
from tests.abuse.message_shapes import eth_messages
from tests.unit.peers.eth.scenarios import run_nodes, run_validator_nodes


def eth(wire: PeerLink) -> EthPeer:
    assert isinstance(wire.attached, EthPeer)
    return wire.attached


def reason(wire: PeerLink) -> DisconnectReason:
    assert wire.ended is not None
    return wire.ended[0]


def test_both_sides_send_status_at_once_and_learn_the_other_head(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        head = [await one.node.seal() for _ in range(3)][-1]
        here, there = connect(one.eth, other.eth)
        assert here.codes() == there.codes() == [Code.STATUS]
        await asyncio.sleep(0.1)
        assert eth(here).is_ready
        assert eth(there).head == PeerHead(head.hash, one.chain.tip.total_difficulty, 3)
        assert eth(here).head.height == 0, "genesis is known, so no request is needed"
        assert there.codes()[1] == Code.GET_BLOCK_HEADERS
        assert [list(node.eth.peers) for node in (one, other)] == [[eth(here)], [eth(there)]]
        here.close()
        assert len(one.eth.peers) == 0

    run_nodes(tmp_path, 2, scenario)


def status_with(change: Callable[[Status], Status]) -> Callable[[int, bytes], bytes | None]:
    def intercept(code: int, payload: bytes) -> bytes | None:
        if code != Code.STATUS:
            return payload
        return ETH_68.write_status(change(ETH_68.read_status(payload)))

    return intercept


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("network", lambda status: replace(status, network_id=4)),
        ("genesis", lambda status: replace(status, genesis=b"\x01" * 32)),
        ("eth/67", lambda status: replace(status, version=67)),
        ("fork hash", lambda status: replace(status, fork_id=ForkId(b"\x01\x02\x03\x04", 0))),
    ],
)
def test_a_peer_of_another_network_is_disconnected_with_a_reason(
    tmp_path: Path, what: str, change: Callable[[Status], Status]
) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, _ = connect(one.eth, other.eth, intercept=status_with(change))
        await asyncio.sleep(0.1)
        assert reason(here) is DisconnectReason.SUBPROTOCOL
        assert here.ended is not None
        assert what in here.ended[1]
        assert len(one.eth.peers) == 0

    run_nodes(tmp_path, 2, scenario)


def test_a_peer_without_status_is_disconnected(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, _ = connect(one.eth, other.eth, intercept=lambda code, payload: None)
        await asyncio.sleep(4)
        assert here.ended is None
        await asyncio.sleep(2)
        assert reason(here) is DisconnectReason.SUBPROTOCOL

    run_nodes(tmp_path, 2, scenario)


@pytest.mark.parametrize(
    ("code", "payload"),
    [
        (Code.NEW_BLOCK, b"\xc0"),
        (Code.GET_BLOCK_HEADERS, GetHeaders(0, 1).encode(1)),
        (Code.BLOCK_HEADERS, b"\xc0"),
        (Code.STATUS, b"\xc0"),
        (Code.STATUS, rlp.encode([68, 1, b"\x01" * 100])),
    ],
)
def test_the_first_message_must_be_a_valid_status(tmp_path: Path, code: Code, payload: bytes) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, _ = connect(one.eth, other.eth)
        here.deliver(code, payload)
        assert reason(here) is DisconnectReason.BREACH

    run_nodes(tmp_path, 2, scenario)


@pytest.mark.parametrize(
    ("code", "payload"),
    [
        (0x0B, b"\xc0"),
        (0x0D, b"\xc0"),
        (Code.BLOCK_RANGE_UPDATE, BlockRange(0, 1, bytes(32)).encode()),
        (Code.BLOCK_BODIES, enclosed(1, b"\xc0")),
        (Code.NEW_BLOCK_HASHES, bytes(70_000)),
        (Code.NEW_BLOCK, bytes(MAX_MESSAGE + 1)),
        (Code.NEW_POOLED_TRANSACTION_HASHES, b"\xc3\x01\x01\x01"),
        (Code.NEW_POOLED_TRANSACTION_HASHES, rlp.encode([b"\x05", [100], [bytes(32)]])),
        (Code.TRANSACTIONS, b"\x80"),
    ],
)
def test_what_breaks_the_protocol_ends_the_connection(tmp_path: Path, code: int, payload: bytes) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, _ = connect(one.eth, other.eth)
        await asyncio.sleep(0.1)
        here.deliver(code, payload)
        assert reason(here) is DisconnectReason.BREACH

    run_nodes(tmp_path, 2, scenario)


def test_a_second_status_is_a_breach(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(0.1)
        here.deliver(*there.sent[0])
        assert reason(here) is DisconnectReason.BREACH

    run_nodes(tmp_path, 2, scenario)


def test_a_peer_that_lacks_its_own_best_block_is_useless(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        await one.node.seal()
        here, there = connect(one.eth, other.eth)
        here.intercept = lambda code, payload: enclosed(1, b"\xc0") if code == Code.BLOCK_HEADERS else payload
        await asyncio.sleep(1)
        assert reason(there) is DisconnectReason.USELESS

    run_nodes(tmp_path, 2, scenario)


def test_a_peer_that_never_sends_its_best_header_is_useless(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        await one.node.seal()
        here, there = connect(one.eth, other.eth)
        here.intercept = lambda code, payload: None if code == Code.BLOCK_HEADERS else payload
        await asyncio.sleep(9)
        assert there.ended is None
        await asyncio.sleep(2)
        assert reason(there) is DisconnectReason.USELESS

    run_nodes(tmp_path, 2, scenario)


def test_five_requests_in_a_row_without_an_answer_end_the_connection(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(0.1)
        there.intercept = lambda code, payload: None
        for _ in range(MAX_TIMEOUTS):
            assert here.ended is None
            with pytest.raises(RequestTimedOut):
                await eth(here).headers(GetHeaders(0, 1))
        assert reason(here) is DisconnectReason.TIMEOUT

    run_nodes(tmp_path, 2, scenario)


def test_useless_answers_within_a_minute_end_the_connection(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, _ = connect(one.eth, other.eth)
        await asyncio.sleep(0.1)
        for _ in range(3 * MAX_USELESS):
            eth(here).useless("now and then")
            await asyncio.sleep(20)
        assert here.ended is None
        for _ in range(MAX_USELESS):
            eth(here).useless("all the time")
        assert reason(here) is DisconnectReason.USELESS

    run_nodes(tmp_path, 2, scenario)


def test_an_invalid_response_disconnects_the_peer_and_fails_the_request(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        for _ in range(5):
            await one.node.seal()
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(3)
        lie = one.chain.store.header(one.chain.store.canonical_hash(2) or b"") or b""
        here.intercept = lambda code, payload: (
            _answer(payload, rlp.list_of([lie])) if code == Code.BLOCK_HEADERS else payload
        )
        with pytest.raises(RequestFailed, match="not the requested one"):
            await eth(there).headers(GetHeaders(3, 1))
        assert reason(there) is DisconnectReason.BREACH

    run_nodes(tmp_path, 2, scenario)


def _answer(payload: bytes, body: bytes) -> bytes:
    return rlp.list_of([rlp.split_list(payload, 1024)[0], body])


def test_estimates_of_a_peers_chain_only_rise(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, _ = connect(one.eth, other.eth)
        await asyncio.sleep(0.1)
        peer = eth(here)
        peer.raise_head(PeerHead(b"a" * 32, 10**9, 10))
        peer.raise_head(PeerHead(b"b" * 32, 10**8, 12))
        assert (peer.head.hash, peer.height) == (b"a" * 32, 12)
        peer.raise_height(5)
        assert peer.height == 12
        peer.has_no_more_than(11)
        assert peer.height == 11

    run_nodes(tmp_path, 2, scenario)


def test_69_sends_and_applies_block_range_updates(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        blocks = [raw for _, raw in sealed_blocks("ibft2", 4, 40)]
        await one.take(iter(blocks[:3]))
        here, there = connect(one.eth, other.eth)
        assert eth(here).version is ETH_69
        await asyncio.sleep(3)
        assert eth(there).head == PeerHead(one.chain.head.hash, None, 3)
        here.deliver(Code.BLOCK_RANGE_UPDATE, BlockRange(0, 90, b"x" * 32).encode())
        assert eth(here).head == PeerHead(b"x" * 32, None, 90)
        here.deliver(Code.BLOCK_RANGE_UPDATE, BlockRange(7, 6, b"x" * 32).encode())
        assert reason(here) is DisconnectReason.SUBPROTOCOL

    run_validator_nodes(tmp_path, 2, scenario)


def test_68_is_used_with_peers_that_offer_only_68(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth, offers=[68])
        await asyncio.sleep(1)
        assert eth(here).version is eth(there).version is ETH_68
        assert eth(here).head.total_difficulty == 1

    run_validator_nodes(tmp_path, 2, scenario)


def test_a_disconnected_peer_is_freed_without_garbage_collection(tmp_path: Path) -> None:
    """A disconnected peer is freed at once. Garbage collections are rare, so a thousand disconnected peers would hold
    megabytes until the next collection.
    """

    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        gone = weakref.ref(here.attached)
        here.disconnect(DisconnectReason.REQUESTED)
        await asyncio.sleep(10)
        here.attached = there.attached = None
        assert gone() is None

    gc.disable()
    try:
        run_nodes(tmp_path, 2, scenario)
    finally:
        gc.enable()


def test_no_message_of_any_shape_makes_many_objects(tmp_path: Path) -> None:
    """Measures the bytes of Python objects per message. `make abuse` measures the time."""

    async def scenario(one: EthNode, other: EthNode) -> None:
        for name, code, payload in eth_messages(512 * 1024):
            near, far = connect(one.eth, other.eth)
            await asyncio.sleep(0.1)
            tracemalloc.start()
            far.deliver(code, payload)
            await asyncio.sleep(0.1)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 4 * 1024 * 1024, name
            near.disconnect(DisconnectReason.REQUESTED)
            await asyncio.sleep(0.1)

    run_nodes(tmp_path, 2, scenario, synchronises=False)

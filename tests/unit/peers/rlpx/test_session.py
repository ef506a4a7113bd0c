"""Tests two sessions connected in memory."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ophion.native import wire
from ophion.native.crypto import PrivateKey
from ophion.native.wire import WireError
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.rlpx.capability import Capability
from ophion.peers.rlpx.disconnect import encode_reason
from ophion.peers.rlpx.hello import Hello
from ophion.peers.rlpx.session import (
    DISCONNECT_ID,
    EMPTY,
    HELLO_ID,
    MAX_MESSAGE,
    PING_ID,
    PONG_ID,
    DisconnectReceived,
    Event,
    HelloReceived,
    Identity,
    Message,
    PingReceived,
    Session,
    Stage,
)
from ophion.runtime.clock import SystemEntropy

A, B = (PrivateKey(bytes(31) + bytes([number])) for number in (1, 2))
ETH68, ETH69 = Capability("eth", 68, 17), Capability("eth", 69, 18)
IBF = Capability("IBF", 1, 4)


def identity(key: PrivateKey, *capabilities: Capability, version: int = 5) -> Identity:
    hello = replace(Hello.of("test", capabilities, 30303, key.public_key), version=version)
    return Identity(key, hello, capabilities)


def pair(a: Identity | None = None, b: Identity | None = None) -> tuple[Session, Session]:
    a, b = a or identity(A, ETH68), b or identity(B, ETH68)
    entropy = SystemEntropy()
    return Session(a, entropy, b.key.public_key), Session(b, entropy)


def exchange(a: Session, b: Session, size: int = 1 << 20) -> tuple[list[Event], list[Event]]:
    """Transfer bytes between two sessions in pieces, until both sessions are idle."""
    events: tuple[list[Event], list[Event]] = [], []
    while True:
        from_a, from_b = a.take_output(), b.take_output()
        if not from_a and not from_b:
            return events
        events[1].extend(deliver(b, from_a, size))
        events[0].extend(deliver(a, from_b, size))


def deliver(session: Session, data: bytes, size: int = 1 << 20, most: int = 64) -> list[Event]:
    events: list[Event] = []
    for start in range(0, len(data), size):
        events += session.receive(data[start : start + size], most)
        while session.has_more:
            events += session.receive(b"", most)
    return events


def opened(*capabilities: Capability) -> tuple[Session, Session]:
    a, b = pair(identity(A, *capabilities), identity(B, *capabilities)) if capabilities else pair()
    exchange(a, b)
    assert a.stage is b.stage is Stage.OPEN
    return a, b


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_two_sessions_greet_each_other_however_the_bytes_are_cut(size: int) -> None:
    a, b = pair(identity(A, ETH69, ETH68, IBF), identity(B, ETH68, IBF))
    seen_by_a, seen_by_b = exchange(a, b, size)
    [met_by_a], [met_by_b] = seen_by_a, seen_by_b
    assert isinstance(met_by_a, HelloReceived)
    assert isinstance(met_by_b, HelloReceived)
    assert met_by_a.hello.node_id == a.remote_id == B.public_key
    assert met_by_b.hello.node_id == b.remote_id == A.public_key
    assert met_by_a.shared == met_by_b.shared
    assert [(str(one.capability), one.offset) for one in a.shared] == [("IBF/1", 0x10), ("eth/68", 0x14)]
    assert a.is_initiator
    assert not b.is_initiator


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_messages_arrive_in_order_with_codes_relative_to_their_capability(size: int) -> None:
    a, b = opened(ETH68, IBF)
    wanted = [(0x14, b"status"), (0x10, b"proposal"), (0x24, b"x" * 100_000), (PING_ID, EMPTY), (PONG_ID, b"")]
    events = deliver(b, a.seal(wanted), size)
    assert [(type(event).__name__, getattr(event, "code", None)) for event in events] == [
        ("Message", 0),
        ("Message", 0),
        ("Message", 16),
        ("PingReceived", None),
    ]
    assert isinstance(events[2], Message)
    assert events[2].payload == b"x" * 100_000
    assert events[2].shared.capability == ETH68


def test_what_follows_hello_in_the_same_read_is_compressed_already() -> None:
    a, b = pair()
    list(b.receive(a.take_output(), 64))
    list(a.receive(b.take_output(), 64))
    hello = a.take_output()
    assert a.stage is Stage.OPEN
    events = list(b.receive(hello + a.seal([(0x10, bytes(50_000))]), 64))
    assert isinstance(events[0], HelloReceived)
    assert events[1] == Message(b.shared[0], 0, bytes(50_000))


def test_a_peer_of_version_4_is_spoken_to_without_compression() -> None:
    a, b = pair(identity(A, ETH68, version=4))
    exchange(a, b)
    payload = bytes(10_000)
    frames = b.seal([(0x10, payload)])
    assert len(frames) > len(payload)
    [message] = deliver(a, frames)
    assert message == Message(a.shared[0], 0, payload)


def test_so_many_events_at_a_time() -> None:
    a, b = opened()
    frames = a.seal([(0x10, bytes([number])) for number in range(10)])
    seen = list(b.receive(frames, 4))
    assert (len(seen), b.has_more) == (4, True)
    seen += b.receive(b"", 4)
    assert (len(seen), b.has_more) == (8, True)
    seen += b.receive(b"", 4)
    assert (len(seen), b.has_more) == (10, False)
    assert [event.payload[0] for event in seen if isinstance(event, Message)] == list(range(10))
    assert b.buffered == 0
    list(b.receive(frames[:10], 4))
    assert b.buffered == 10


def refused(session: Session, data: bytes) -> DisconnectReason:
    with pytest.raises(PeerMisbehaved) as caught:
        list(session.receive(data, 64))
    return caught.value.reason


def refused_in_exchange(a: Session, b: Session) -> DisconnectReason:
    with pytest.raises(PeerMisbehaved) as caught:
        exchange(a, b)
    return caught.value.reason


def test_nothing_in_common() -> None:
    a, b = pair(identity(A, ETH69))
    assert refused_in_exchange(a, b) is DisconnectReason.USELESS


def test_a_node_with_eth_needs_eth_in_common() -> None:
    a, b = pair(identity(A, ETH68, IBF), identity(B, ETH69, IBF))
    assert refused_in_exchange(a, b) is DisconnectReason.USELESS


def test_a_node_without_sub_protocols_still_says_hello_and_why_it_leaves() -> None:
    a, b = pair(b=identity(B))
    list(b.receive(a.take_output(), 64))
    reply = b.take_output()
    with pytest.raises(PeerMisbehaved):
        list(a.receive(reply, 64))
    assert refused(b, a.take_output()) is DisconnectReason.USELESS


def test_hello_must_show_the_proven_key() -> None:
    liar = identity(A, ETH68)
    liar = replace(liar, hello=replace(liar.hello, node_id=PrivateKey(bytes(31) + b"\x09").public_key))
    a, b = pair(liar)
    assert refused_in_exchange(a, b) is DisconnectReason.UNEXPECTED_IDENTITY


def test_a_node_that_meets_itself() -> None:
    me = identity(A, ETH68)
    a, b = pair(me, me)
    assert refused_in_exchange(a, b) is DisconnectReason.CONNECTED_TO_SELF


def test_a_dialled_node_that_has_another_key_cannot_even_answer() -> None:
    a = Session(identity(A, ETH68), SystemEntropy(), PrivateKey(bytes(31) + b"\x09").public_key)
    b = Session(identity(B, ETH68), SystemEntropy())
    with pytest.raises(WireError):
        list(b.receive(a.take_output(), 64))


def test_an_id_that_is_no_key_cannot_be_dialled() -> None:
    with pytest.raises(WireError):
        Session(identity(A, ETH68), SystemEntropy(), b"\x05" * 64)


def stranger(b: Session) -> wire.Session:
    """Return a remote node that has completed the handshake with `b`. The test scripts its further messages."""
    handshake = wire.Handshake.initiate(A.secret(), B.public_key, SystemEntropy().token(wire.HANDSHAKE_ENTROPY))
    assert list(b.receive(handshake.auth, 64)) == []
    answer = b.take_output()
    return handshake.finish(answer[: 2 + int.from_bytes(answer[:2], "big")])


@pytest.mark.parametrize("message_id", [PING_ID, PONG_ID, 0x05, 0x10, 0x50])
def test_nothing_counts_before_hello(message_id: int) -> None:
    _, b = pair()
    assert refused(b, stranger(b).seal([(message_id, EMPTY)])) is DisconnectReason.BREACH


@pytest.mark.parametrize("payload", ["c104", "04"])
def test_disconnect_instead_of_hello_is_not_compressed(payload: str) -> None:
    _, b = pair()
    frames = stranger(b).seal([(DISCONNECT_ID, bytes.fromhex(payload))])
    assert deliver(b, frames) == [DisconnectReceived(DisconnectReason.TOO_MANY_PEERS)]
    assert b.stage is Stage.ENDED


def test_disconnect_before_our_hello_was_read_is_understood() -> None:
    _, b = pair()
    other = stranger(b)
    frames = other.seal([(HELLO_ID, identity(A, ETH68).hello.encode()), (DISCONNECT_ID, b"\xc1\x04")])
    events = deliver(b, frames)
    assert isinstance(events[0], HelloReceived)
    assert events[1:] == [DisconnectReceived(DisconnectReason.TOO_MANY_PEERS)]


def test_a_refusal_after_hello_is_compressed_and_one_before_it_is_not() -> None:
    _, b = pair()
    other = stranger(b)
    other.feed(b"")
    assert refused(b, other.seal([(HELLO_ID, identity(A, ETH69).hello.encode())])) is DisconnectReason.USELESS
    frames = b.seal_disconnect(DisconnectReason.USELESS)
    assert len(frames) == 64, "one block: the id and 4 compressed bytes"


def test_a_second_hello_is_a_breach() -> None:
    a, b = opened()
    assert refused(b, a.seal([(HELLO_ID, identity(A, ETH68).hello.encode())])) is DisconnectReason.BREACH


def test_an_id_of_no_capability_is_a_breach_and_reserved_ones_are_ignored() -> None:
    a, b = opened()
    assert deliver(b, a.seal([(number, EMPTY) for number in range(4, 16)])) == []
    assert refused(b, a.seal([(0x21, EMPTY)])) is DisconnectReason.BREACH


def test_what_came_before_a_breach_is_still_handed_out() -> None:
    a, b = opened()
    events = b.receive(a.seal([(0x10, b"good"), (0x60, b"bad")]), 64)
    assert next(events) == Message(b.shared[0], 0, b"good")
    with pytest.raises(PeerMisbehaved):
        next(events)


@pytest.mark.parametrize("payload", [encode_reason(DisconnectReason.TOO_MANY_PEERS), b"\x04"])
def test_disconnect_after_hello(payload: bytes) -> None:
    a, b = opened()
    events = deliver(b, a.seal([(0x10, b"last"), (DISCONNECT_ID, payload), (0x10, b"never")]))
    assert events == [Message(b.shared[0], 0, b"last"), DisconnectReceived(DisconnectReason.TOO_MANY_PEERS)]
    assert b.stage is Stage.ENDED
    assert deliver(b, b"anything at all") == []


def test_no_message_is_sent_before_the_handshake() -> None:
    a, b = pair()
    assert a.seal_disconnect(DisconnectReason.CLIENT_QUITTING) == b""
    assert b.take_output() == b""


@pytest.mark.parametrize("position", [0, 2, 40, 100, -1])
def test_a_changed_byte_in_the_handshake_ends_it(position: int) -> None:
    a, b = pair()
    auth = bytearray(a.take_output())
    auth[position] ^= 0x01
    with pytest.raises(WireError):
        list(b.receive(bytes(auth) + bytes(2048), 64))


def test_a_handshake_of_more_than_2048_bytes_is_refused_by_its_size() -> None:
    _, b = pair()
    with pytest.raises(WireError):
        list(b.receive((2049).to_bytes(2, "big"), 64))


@pytest.mark.parametrize("data", [b"\x00\x00", b"\x00\x01x", b"\x00\x10" + bytes(16)])
def test_a_handshake_of_nothing_is_refused(data: bytes) -> None:
    _, b = pair()
    with pytest.raises(WireError):
        list(b.receive(data, 64))


def test_a_hello_of_two_megabytes_is_refused_before_it_arrived() -> None:
    long = identity(A, ETH68)
    long = replace(long, hello=replace(long.hello, client_id="x" * 2_000_000))
    a, b = pair(long)
    list(b.receive(a.take_output(), 64))
    list(a.receive(b.take_output(), 64))
    with pytest.raises((WireError, PeerMisbehaved)):
        list(b.receive(a.take_output()[:64], 64))
    assert b.buffered < 4096


def test_a_changed_byte_in_a_frame_ends_it() -> None:
    a, b = opened()
    frame = bytearray(a.seal([(0x10, b"payload")]))
    frame[40] ^= 0x80
    with pytest.raises(WireError):
        list(b.receive(bytes(frame), 64))


def test_the_largest_message_of_the_transport() -> None:
    a, b = opened()
    payload = bytes(MAX_MESSAGE - 1)
    [message] = deliver(b, a.seal([(0x10, payload)]))
    assert isinstance(message, Message)
    assert len(message.payload) == MAX_MESSAGE - 1


def test_pings_are_reported() -> None:
    a, b = opened()
    assert deliver(b, a.seal([(PING_ID, b""), (PING_ID, EMPTY)])) == [PingReceived(), PingReceived()]


@given(st.data())
def test_a_stream_that_was_tampered_with_ends_in_one_of_two_ways(data: st.DataObject) -> None:
    a, b = pair()
    list(b.receive(a.take_output(), 64))
    list(a.receive(b.take_output(), 64))
    stream = bytearray(a.take_output() + a.seal([(0x10, b"status"), (PING_ID, EMPTY), (0x20, bytes(300))]))
    positions = st.sets(st.integers(0, len(stream) - 1), min_size=1, max_size=4)
    for position in data.draw(positions):
        stream[position] ^= data.draw(st.integers(1, 255))
    seen: list[Event] = []
    with suppress(WireError, PeerMisbehaved):
        for start in range(0, len(stream), 37):
            seen += b.receive(bytes(stream[start : start + 37]), 8)
    assert len(seen) <= 3, "not everything can have been good"


@given(st.binary(max_size=600))
def test_garbage_instead_of_a_handshake_ends_it_or_waits(garbage: bytes) -> None:
    _, b = pair()
    with suppress(WireError):
        assert list(b.receive(garbage, 8)) == []

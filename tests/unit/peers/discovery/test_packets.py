from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.errors import DecodeError
from ophion.native import wire
from ophion.peers.discovery.packets import (
    Endpoint,
    FindNode,
    Neighbor,
    Neighbors,
    Packet,
    PacketKind,
    Ping,
    Pong,
    RecordRequest,
    RecordResponse,
    decode,
    encode,
)
from ophion.primitives import rlp
from tests.data.wire.vectors import vector

HERE, THERE = Endpoint("127.0.0.1", 3322, 5544), Endpoint("::1", 2222, 3333)
EXPIRES = 1136239445


def opened(name: str) -> Packet:
    _, _, kind, data = wire.open_packet(vector(name))
    return decode(kind, data)


def test_the_vectors_of_the_reference() -> None:
    assert opened("ping_packet") == Ping(HERE, THERE, EXPIRES)
    later = opened("ping_with_more_packet")
    assert isinstance(later, Ping)
    assert (later.sender, later.receiver, later.expiration, later.record_seq) == (HERE, THERE, EXPIRES, 1)
    other = opened("ping_of_later_version_packet")
    assert isinstance(other, Ping)
    assert other.record_seq is None, "a list stands where the number is expected"
    pong = opened("pong_packet")
    assert isinstance(pong, Pong)
    assert pong.expiration == EXPIRES
    found = opened("find_node_packet")
    assert isinstance(found, FindNode)
    assert found.target.hex().startswith("ca634cae0d49acb4")
    neighbors = opened("neighbors_packet")
    assert isinstance(neighbors, Neighbors)
    assert [node.endpoint for node in neighbors.nodes] == [
        Endpoint("99.33.22.55", 4444, 4445),
        Endpoint("1.2.3.4", 1, 1),
        Endpoint("2001:db8:3c4d:15::abcd:ef12", 3333, 3333),
        Endpoint("2001:db8:85a3:8d3:1319:8a2e:370:7348", 999, 1000),
    ]


@pytest.mark.parametrize(
    "packet",
    [
        Ping(HERE, THERE, EXPIRES, 7),
        Ping(Endpoint("", 1, 0), THERE, EXPIRES),
        Pong(HERE, b"\x01" * 32, EXPIRES, 0),
        FindNode(b"\x02" * 64, EXPIRES),
        Neighbors((), EXPIRES),
        Neighbors((Neighbor(HERE, b"\x03" * 64), Neighbor(THERE, b"\x04" * 64)), EXPIRES),
        RecordRequest(EXPIRES),
        RecordResponse(b"\x05" * 32, vector("record")),
    ],
)
def test_what_is_written_is_read(packet: Packet) -> None:
    assert decode(*encode(packet)) == packet


def test_twelve_neighbours_fit_one_datagram() -> None:
    far = Endpoint("2001:db8:85a3:8d3:1319:8a2e:370:7348", 65535, 65535)
    kind, data = encode(Neighbors((Neighbor(far, b"\xff" * 64),) * 12, 2**32))
    assert len(wire.seal_packet(b"\x01" * 32, kind, data)) <= 1280


@pytest.mark.parametrize(
    ("kind", "items"),
    [
        (PacketKind.PING, [4, [b"\x7f" * 4, 1, 1]]),
        (PacketKind.PING, [4, b"", [b"\x7f" * 4, 1, 1], 1]),
        (PacketKind.PING, [4, [b"\x7f" * 5, 1, 1], [b"\x7f" * 4, 1, 1], 1]),
        (PacketKind.PING, [4, [b"\x7f" * 4, 65536, 1], [b"\x7f" * 4, 1, 1], 1]),
        (PacketKind.PONG, [[b"", 1, 1], b"\x01" * 31, 1]),
        (PacketKind.FIND_NODE, [b"\x01" * 63, 1]),
        (PacketKind.NEIGHBORS, [b"", 1]),
        (PacketKind.NEIGHBORS, [[[b"\x7f" * 4, 1, 1]], 1]),
        (PacketKind.RECORD_REQUEST, []),
        (PacketKind.RECORD_REQUEST, [[]]),
        (PacketKind.RECORD_RESPONSE, [b"\x01" * 32]),
        (7, [1]),
        (0, []),
    ],
)
def test_anything_else_is_no_packet(kind: int, items: rlp.Encodable) -> None:
    with pytest.raises(DecodeError):
        decode(kind, rlp.encode(items))


@given(st.integers(0, 8), st.binary(max_size=300))
def test_garbage_is_a_decode_error(kind: int, data: bytes) -> None:
    with suppress(DecodeError):
        decode(kind, data)

"""The six discovery packets as typed values (networking.md 2.1).

Decoding is lenient where the protocol demands it: it ignores additional list elements, an empty IP, and a record
sequence number that is not a number. Other errors raise `DecodeError`, and the caller drops the packet.
"""

from __future__ import annotations

import ipaddress
from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct

from ophion.errors import DecodeError
from ophion.primitives import rlp
from ophion.primitives.enode import NODE_ID_LENGTH

VERSION: Final = 4
_HASH_LENGTH: Final = 32
_MAX_NUMBER_BYTES: Final = 8
_MAX_ITEMS: Final = 256
"""Limit of RLP items in a packet, at all levels. A packet with 16 neighbours has 81 items."""


class PacketKind(IntEnum):
    """Type byte of a discovery packet."""

    PING = 1
    PONG = 2
    FIND_NODE = 3
    NEIGHBORS = 4
    RECORD_REQUEST = 5
    RECORD_RESPONSE = 6


class Endpoint(Struct, frozen=True):
    """Address and ports that a node claims."""

    ip: str
    """IP address in canonical form; empty if omitted."""
    udp_port: int
    tcp_port: int


class Ping(Struct, frozen=True):
    """A discovery packet that checks whether a node is alive."""

    sender: Endpoint
    receiver: Endpoint
    expiration: int
    record_seq: int | None = None


class Pong(Struct, frozen=True):
    """Response to a Ping. A Pong names the endpoint from which the Ping came."""

    receiver: Endpoint
    ping_hash: bytes
    expiration: int
    record_seq: int | None = None


class FindNode(Struct, frozen=True):
    """Request for the nodes closest to a public key."""

    target: bytes
    expiration: int


class Neighbor(Struct, frozen=True):
    """One node of a Neighbors packet."""

    endpoint: Endpoint
    node_id: bytes


class Neighbors(Struct, frozen=True):
    """Response to a FindNode; one response may take two packets."""

    nodes: tuple[Neighbor, ...]
    expiration: int


class RecordRequest(Struct, frozen=True):
    """Request for the node record."""

    expiration: int


class RecordResponse(Struct, frozen=True):
    """Response to a RecordRequest, with the node record of the sender."""

    request_hash: bytes
    record: bytes
    """RLP of a node record."""


Packet: TypeAlias = Ping | Pong | FindNode | Neighbors | RecordRequest | RecordResponse


def encode(packet: Packet) -> tuple[PacketKind, bytes]:
    """Return the type byte and RLP of a packet."""
    match packet:
        case Ping(sender, receiver, expiration, seq):
            return PacketKind.PING, _list([VERSION, _endpoint(sender), _endpoint(receiver), expiration], seq)
        case Pong(receiver, ping_hash, expiration, seq):
            return PacketKind.PONG, _list([_endpoint(receiver), ping_hash, expiration], seq)
        case FindNode(target, expiration):
            return PacketKind.FIND_NODE, rlp.encode([target, expiration])
        case Neighbors(nodes, expiration):
            listed = [[*_endpoint(node.endpoint), node.node_id] for node in nodes]
            return PacketKind.NEIGHBORS, rlp.encode([listed, expiration])
        case RecordRequest(expiration):
            return PacketKind.RECORD_REQUEST, rlp.encode([expiration])
        case RecordResponse(request_hash, record):
            return PacketKind.RECORD_RESPONSE, rlp.list_of([rlp.encode(request_hash), record])


def decode(kind: int, data: bytes) -> Packet:
    """Decode a packet from its type byte and RLP; raises `DecodeError`."""
    if kind == PacketKind.RECORD_RESPONSE:
        parts = rlp.split_list(data, _MAX_ITEMS)
        if len(parts) < 2:
            raise DecodeError("packet: too few elements")
        return RecordResponse(_bytes(rlp.decode(parts[0], max_items=0), _HASH_LENGTH), parts[1])
    items = rlp.decode_list(data, max_items=_MAX_ITEMS)
    try:
        match kind:
            case PacketKind.PING:
                return Ping(_read_endpoint(items[1]), _read_endpoint(items[2]), _number(items[3]), _seq(items, 4))
            case PacketKind.PONG:
                ping_hash = _bytes(items[1], _HASH_LENGTH)
                return Pong(_read_endpoint(items[0]), ping_hash, _number(items[2]), _seq(items, 3))
            case PacketKind.FIND_NODE:
                return FindNode(_bytes(items[0], NODE_ID_LENGTH), _number(items[1]))
            case PacketKind.NEIGHBORS:
                if isinstance(items[0], bytes):
                    raise DecodeError("neighbours: expected a list")
                return Neighbors(tuple(_neighbor(item) for item in items[0]), _number(items[1]))
            case PacketKind.RECORD_REQUEST:
                return RecordRequest(_number(items[0]))
    except IndexError:
        raise DecodeError("packet: too few elements") from None
    raise DecodeError(f"unknown packet type {kind}")


def _list(items: list[rlp.Encodable], seq: int | None) -> bytes:
    return rlp.encode(items if seq is None else [*items, seq])


def _endpoint(endpoint: Endpoint) -> list[rlp.Encodable]:
    ip = ipaddress.ip_address(endpoint.ip).packed if endpoint.ip else b""
    return [ip, endpoint.udp_port, endpoint.tcp_port]


def _read_endpoint(item: rlp.Item) -> Endpoint:
    if isinstance(item, bytes) or len(item) < 2:
        raise DecodeError("endpoint: expected a list")
    ip = _bytes(item[0])
    if len(ip) not in (0, 4, 16):
        raise DecodeError(f"endpoint: an IP of {len(ip)} bytes")
    return Endpoint(_ip(ip), _port(item[1]), _port(item[2]) if len(item) > 2 else 0)


def _neighbor(item: rlp.Item) -> Neighbor:
    if isinstance(item, bytes) or len(item) < 4:
        raise DecodeError("neighbour: expected a list")
    return Neighbor(_read_endpoint(item[:3]), _bytes(item[3], NODE_ID_LENGTH))


def _ip(packed: bytes) -> str:
    if not packed:
        return ""
    address = ipaddress.ip_address(packed)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(address if mapped is None else mapped)


def _bytes(item: rlp.Item, length: int | None = None) -> bytes:
    if not isinstance(item, bytes) or (length is not None and len(item) != length):
        raise DecodeError("expected bytes" if length is None else f"expected {length} bytes")
    return item


def _number(item: rlp.Item) -> int:
    if not isinstance(item, bytes) or len(item) > _MAX_NUMBER_BYTES:
        raise DecodeError(f"expected a number of at most {_MAX_NUMBER_BYTES} bytes")
    return rlp.decode_int(item)


def _port(item: rlp.Item) -> int:
    number = _number(item)
    if number > 0xFFFF:
        raise DecodeError(f"port {number} is out of range")
    return number


def _seq(items: list[rlp.Item], index: int) -> int | None:
    """Return the record sequence number, or None if it is missing or not a number."""
    try:
        return _number(items[index])
    except (IndexError, DecodeError):
        return None

"""Hello: the first message of each side (networking.md 1.8).

What a stranger says is read leniently where clients differ (any version, any order, more elements, no name) and
strictly where it counts: the size, and an identity of 64 bytes that are not all zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from ophion.errors import DecodeError
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.rlpx.capability import Capability
from ophion.primitives import rlp
from ophion.primitives.enode import NODE_ID_LENGTH

P2P_VERSION: Final = 5
MAX_SIZE: Final = 2048
_MAX_CLIENT_ID: Final = 256
_ELEMENTS: Final = 5
_VERSION_WIDTH: Final = 8
"""Bytes of the widest number taken seriously in a Hello."""


class Hello(Struct, frozen=True):
    """Who a node says it is."""

    version: int
    client_id: str
    capabilities: tuple[tuple[str, int], ...]
    """Names and versions in the order they were written."""
    listen_port: int
    node_id: bytes

    @classmethod
    def of(cls, client_id: str, capabilities: Iterable[Capability], listen_port: int, node_id: bytes) -> Hello:
        """What this node says."""
        offers = tuple((one.name, one.version) for one in capabilities)
        return cls(P2P_VERSION, client_id, offers, listen_port, node_id)

    @property
    def is_compressing(self) -> bool:
        """Whether this side compresses what follows."""
        return self.version >= P2P_VERSION

    @property
    def caps(self) -> list[str]:
        """Capabilities as text, `eth/68`."""
        return [f"{name}/{version}" for name, version in self.capabilities]

    def encode(self) -> bytes:
        """The payload of the message."""
        offers: list[rlp.Encodable] = [[name.encode("ascii"), version] for name, version in self.capabilities]
        return rlp.encode([self.version, self.client_id.encode(), offers, self.listen_port, self.node_id])

    @classmethod
    def decode(cls, payload: bytes) -> Hello:
        """Read a payload; `PeerMisbehaved` says with which reason the connection ends otherwise."""
        if len(payload) > MAX_SIZE:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"Hello of {len(payload)} bytes")
        try:
            fields = rlp.decode_list(payload)
            if len(fields) < _ELEMENTS:
                raise DecodeError(f"{len(fields)} elements")
            version, client_id, offers, port, node_id = fields[:_ELEMENTS]
            hello = cls(_number(version), printable(_bytes(client_id)), _offers(offers), _port(port), _bytes(node_id))
        except DecodeError as error:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"Hello: {error}") from None
        if len(hello.node_id) != NODE_ID_LENGTH or not any(hello.node_id):
            raise PeerMisbehaved(DisconnectReason.NULL_IDENTITY, "Hello without an identity")
        return hello


def printable(text: bytes) -> str:
    """Text of a stranger as operators may see it: one line, nothing that moves the cursor, not endless."""
    shown = "".join(character for character in text.decode(errors="replace") if character.isprintable())
    return shown[:_MAX_CLIENT_ID]


def _offers(item: rlp.Item) -> tuple[tuple[str, int], ...]:
    if isinstance(item, bytes):
        raise DecodeError("capabilities are not a list")
    offers = []
    for offer in item:
        if isinstance(offer, bytes) or len(offer) < 2:
            raise DecodeError("a capability is not a name and a version")
        name = _bytes(offer[0])
        if name.isascii() and (text := name.decode("ascii")).isprintable():
            # what nobody can spell nobody shares
            offers.append((text, _number(offer[1])))
    return tuple(offers)


def _bytes(item: rlp.Item) -> bytes:
    if not isinstance(item, bytes):
        raise DecodeError("a list where bytes are expected")
    return item


def _number(item: rlp.Item) -> int:
    if len(item) > _VERSION_WIDTH:
        raise DecodeError(f"a number of {len(item)} bytes")
    return rlp.decode_int(item)


def _port(item: rlp.Item) -> int:
    """Where the peer listens, 0 when it does not or says nonsense: the port is information, not identity."""
    number = _number(item)
    return number if number <= 0xFFFF else 0

"""Hello: the first message of each node (networking.md 1.8).

Decoding is lenient where clients differ: it accepts any version, any order of capabilities, additional elements and an
empty name. Decoding is strict about the size and the node id: 64 bytes, not all zero.
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
_MAX_CLIENT_ID_LENGTH: Final = 256
_ELEMENTS: Final = 5
_MAX_NUMBER_BYTES: Final = 8


class Hello(Struct, frozen=True):
    """The Hello message: client name, capabilities, listen port and node id of a node."""

    version: int
    client_id: str
    capabilities: tuple[tuple[str, int], ...]
    """Names and versions of the capabilities, in the order of the message."""
    listen_port: int
    node_id: bytes

    @classmethod
    def of(cls, client_id: str, capabilities: Iterable[Capability], listen_port: int, node_id: bytes) -> Hello:
        """Build the Hello of this node."""
        offers = tuple((one.name, one.version) for one in capabilities)
        return cls(P2P_VERSION, client_id, offers, listen_port, node_id)

    @property
    def is_compressing(self) -> bool:
        """Whether the sender of this Hello compresses the messages after Hello."""
        return self.version >= P2P_VERSION

    @property
    def caps(self) -> list[str]:
        """Capabilities as text, such as `eth/68`."""
        return [f"{name}/{version}" for name, version in self.capabilities]

    def encode(self) -> bytes:
        """Encode the payload of the Hello message."""
        offers: list[rlp.Encodable] = [[name.encode("ascii"), version] for name, version in self.capabilities]
        return rlp.encode([self.version, self.client_id.encode(), offers, self.listen_port, self.node_id])

    @classmethod
    def decode(cls, payload: bytes) -> Hello:
        """Decode the payload of a Hello message. For an invalid payload, raises `PeerMisbehaved` with the disconnect
        reason.
        """
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
            raise PeerMisbehaved(DisconnectReason.NULL_IDENTITY, "Hello without a node id")
        return hello


def printable(text: bytes) -> str:
    """Return remote text that is safe to log: printable characters only, of limited length."""
    shown = "".join(character for character in text.decode(errors="replace") if character.isprintable())
    return shown[:_MAX_CLIENT_ID_LENGTH]


def _offers(item: rlp.Item) -> tuple[tuple[str, int], ...]:
    if isinstance(item, bytes):
        raise DecodeError("capabilities are not a list")
    offers = []
    for offer in item:
        if isinstance(offer, bytes) or len(offer) < 2:
            raise DecodeError("a capability is not a name and a version")
        name = _bytes(offer[0])
        # skip names that are not printable ASCII, because no own capability has such a name
        if name.isascii() and (text := name.decode("ascii")).isprintable():
            offers.append((text, _number(offer[1])))
    return tuple(offers)


def _bytes(item: rlp.Item) -> bytes:
    if not isinstance(item, bytes):
        raise DecodeError("a list where bytes are expected")
    return item


def _number(item: rlp.Item) -> int:
    if len(item) > _MAX_NUMBER_BYTES:
        raise DecodeError(f"a number of {len(item)} bytes")
    return rlp.decode_int(item)


def _port(item: rlp.Item) -> int:
    """Return the listen port, or 0 if the peer sends no valid port."""
    number = _number(item)
    return number if number <= 0xFFFF else 0

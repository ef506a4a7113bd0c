"""The Disconnect message, in the encodings that clients use (networking.md 1.8).

| payload          | written by                                   | means       |
| ---------------- | -------------------------------------------- | ----------- |
| `c1 nn`          | all clients, as specified                    | reason nn   |
| `nn`             | geth of many versions                        | reason nn   |
| `c1 80`, `c1 00` | Besu for "unknown" and for "requested"       | reason 0    |
| anything else    | `c0`, nothing at all, garbage                | unknown     |
"""

from __future__ import annotations

from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.primitives import rlp

_REASONS = {int(reason): reason for reason in DisconnectReason}
_LIST_OF_ONE = 0xC1
_ZERO = 0x80


def encode_reason(reason: DisconnectReason) -> bytes:
    """Encode the payload of a Disconnect, always as a list."""
    return rlp.encode([int(reason)])


def decode_reason(payload: bytes) -> DisconnectReason | None:
    """Decode the payload of a Disconnect. Returns None for an unknown reason."""
    if len(payload) == 2 and payload[0] == _LIST_OF_ONE:
        payload = payload[1:]
    if len(payload) != 1:
        return None
    return DisconnectReason.REQUESTED if payload[0] == _ZERO else _REASONS.get(payload[0])

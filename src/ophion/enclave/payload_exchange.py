"""Sealed payloads and groups as enclaves exchange them (`EnclaveRecord`), and the interface of a connection between
enclaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from msgspec import Struct

from ophion.enclave.interface import KEY_SIZE
from ophion.errors import DecodeError


class RecordKind(IntEnum):
    """Whether an `EnclaveRecord` is a payload or a group. The value is used on the wire and in the database."""

    PAYLOAD = 1
    GROUP = 2


class RecordLabel(NamedTuple):
    """Kind and id of an `EnclaveRecord`: the key of a payload, or the id of a group."""

    kind: RecordKind
    id: bytes

    def encode(self) -> bytes:
        """Encode the label as one byte and the id."""
        return bytes((self.kind,)) + self.id

    @classmethod
    def decode(cls, encoded: bytes) -> RecordLabel:
        """Decode a label. Raises `DecodeError` for other input."""
        if len(encoded) != 1 + KEY_SIZE or encoded[0] not in (RecordKind.PAYLOAD, RecordKind.GROUP):
            raise DecodeError("not a label of a payload or a group", "record")
        return cls(RecordKind(encoded[0]), encoded[1:])


class EnclaveRecord(Struct, frozen=True):
    """A sealed payload or a group, as enclaves send it."""

    label: RecordLabel
    body: bytes


class RecordListing(NamedTuple):
    """One page of the ids of all payloads and groups that another enclave has for a key."""

    labels: list[RecordLabel]
    last: int
    """Sequence number of the last item on this page. The next page begins after it."""
    has_more: bool


class EnclaveLinkLost(Exception):
    """The connection to another enclave is lost, or a request has timed out."""


class EnclaveLink(Protocol):
    """A connection to another enclave that has proven that it holds its keys."""

    name: str
    """Name of the connection for logs."""
    identity: bytes
    """Identity of the peer, which does not change at restarts. Cursors are stored under this identity."""
    keys: frozenset[bytes]
    """Keys that the peer has proven so far."""
    is_fallback: bool
    """Whether this connection is used only while no other connection reaches the key."""

    def push(self, entry: EnclaveRecord) -> asyncio.Future[str | None]:
        """Push a payload or group. The result is None when the other enclave has stored it durably, otherwise the
        reason of the refusal. Raises `EnclaveLinkLost`.
        """

    async def listing(self, key: bytes, after: int) -> RecordListing:
        """List the payloads and groups that arrived at the other enclave for a local key after a sequence number.
        Raises `EnclaveLinkLost`.
        """

    async def fetch(self, labels: Sequence[RecordLabel]) -> list[EnclaveRecord]:
        """Fetch payloads and groups by id, as many as fit in one response. Raises `EnclaveLinkLost`."""

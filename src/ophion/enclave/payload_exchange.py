"""What enclaves exchange (`Parcel`): sealed payloads and groups, each under its id."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from msgspec import Struct

from ophion.enclave.interface import KEY_SIZE
from ophion.errors import DecodeError


class Kind(IntEnum):
    """Whether a `Parcel` is a payload or a group. The value is used on the wire and in the database."""

    PAYLOAD = 1
    GROUP = 2


class Label(NamedTuple):
    """Kind and id of a `Parcel`: the key of a payload, or the id of a group."""

    kind: Kind
    id: bytes

    def encode(self) -> bytes:
        """Encode the label as one byte and the id."""
        return bytes((self.kind,)) + self.id

    @classmethod
    def decode(cls, encoded: bytes) -> Label:
        """Decode a label. Raises `DecodeError` for other input."""
        if len(encoded) != 1 + KEY_SIZE or encoded[0] not in (Kind.PAYLOAD, Kind.GROUP):
            raise DecodeError("not a label of a payload or a group", "parcel")
        return cls(Kind(encoded[0]), encoded[1:])


class Parcel(Struct, frozen=True):
    """A sealed payload or a group, as enclaves send it."""

    label: Label
    body: bytes


class Listing(NamedTuple):
    """One page of the ids of all payloads and groups that another enclave has for a key."""

    labels: list[Label]
    last: int
    """Sequence number of the last item on this page. The next page begins after it."""
    has_more: bool


class LineLost(Exception):
    """The connection to another enclave is lost, or a request has timed out."""


class Line(Protocol):
    """A connection to another enclave that has proven that it holds its keys."""

    name: str
    """Name of the connection for logs."""
    identity: bytes
    """Identity of the peer, which does not change at restarts. Cursors are stored under this identity."""
    keys: frozenset[bytes]
    """Keys that the peer has proven so far."""
    is_fallback: bool
    """Whether this connection is used only while no other connection reaches the key."""

    def push(self, parcel: Parcel) -> asyncio.Future[str | None]:
        """Push a payload or group. The result is None when the other enclave has stored it durably, otherwise the
        reason of the refusal. Raises `LineLost`.
        """

    async def listing(self, key: bytes, after: int) -> Listing:
        """List the payloads and groups that arrived at the other enclave for a local key after a sequence number.
        Raises `LineLost`.
        """

    async def fetch(self, labels: Sequence[Label]) -> list[Parcel]:
        """Fetch payloads and groups by id, as many as fit in one response. Raises `LineLost`."""

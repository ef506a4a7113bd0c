"""What enclaves hand each other: sealed payloads and groups, each under its id."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

from msgspec import Struct

from ophion.enclave.interface import KEY_SIZE
from ophion.errors import DecodeError


class Kind(IntEnum):
    """What is in a parcel; the value stands on the wire and in the database."""

    PAYLOAD = 1
    GROUP = 2


class Label(NamedTuple):
    """Which parcel."""

    kind: Kind
    id: bytes

    def encode(self) -> bytes:
        """One byte and the id."""
        return bytes((self.kind,)) + self.id

    @classmethod
    def decode(cls, encoded: bytes) -> Label:
        """`DecodeError` for what is no label."""
        if len(encoded) != 1 + KEY_SIZE or encoded[0] not in (Kind.PAYLOAD, Kind.GROUP):
            raise DecodeError("not a label of a payload or a group", "parcel")
        return cls(Kind(encoded[0]), encoded[1:])


class Parcel(Struct, frozen=True):
    """A payload's record or a group's."""

    label: Label
    body: bytes


class Listing(NamedTuple):
    """A page of what another enclave has for a key."""

    labels: list[Label]
    last: int
    """The number of the last one: where the next page begins."""
    has_more: bool


class LineLost(Exception):
    """The way to another enclave is gone, or it did not answer in time."""


class Line(Protocol):
    """A way to another enclave that has proven its keys."""

    name: str
    """For people."""
    identity: bytes
    """Who is at its end, the same after a restart; what was listed there is remembered under it."""
    keys: frozenset[bytes]
    """What it has proven so far."""

    def push(self, parcel: Parcel) -> asyncio.Future[str | None]:
        """Hand a parcel over: None when it is durable there, or why it was refused; `LineLost`."""

    async def listing(self, key: bytes, after: int) -> Listing:
        """What came there for a key of ours after a number; `LineLost`."""

    async def fetch(self, labels: Sequence[Label]) -> list[Parcel]:
        """Parcels by their labels, as many as fit in one answer of what it has and we may see; `LineLost`."""

"""What the pool answers and announces."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from ophion.errors import PoolRejected
from ophion.pool.queue import PooledTransaction
from ophion.primitives.types import Hash32


class Origin(Enum):
    """Where a transaction came from."""

    LOCAL = "local"
    """Sent to this node by a client; kept over a restart and evicted last."""
    REMOTE = "remote"
    """Heard from a peer, or returned by a reorganisation."""


class DropReason(Enum):
    """Why a transaction left the pool without being mined."""

    REPLACED = "replaced"
    EVICTED = "evicted"
    EXPIRED = "expired"
    STALE = "stale"
    """Its nonce was used by another transaction."""
    INVALID = "invalid"
    """A block could not be built with it."""
    NOT_PERMITTED = "not permitted"
    """Its sender may not send it, by the rules at the time a block was built."""


class Admitted(Struct, frozen=True):
    """The transaction is in the pool."""

    hash: Hash32


class Rejected(Struct, frozen=True):
    """The transaction is not in the pool, and why; `hash` is known unless it could not be decoded."""

    error: PoolRejected
    hash: Hash32 | None = None


Admission: TypeAlias = Admitted | Rejected


def taken(admissions: list[Admission]) -> Hash32:
    """The hash of the one transaction that was sent; raises what the pool has against it."""
    (admission,) = admissions
    if isinstance(admission, Admitted):
        return admission.hash
    raise admission.error


class Added(Struct, frozen=True):
    """Transactions entered the pool, in the order of arrival."""

    transactions: tuple[PooledTransaction, ...]


class Dropped(Struct, frozen=True):
    """Transactions left the pool without being mined."""

    transactions: tuple[PooledTransaction, ...]
    reason: DropReason
    details: Mapping[Hash32, str] | None = None
    """More about some of them, in words."""


PoolEvent: TypeAlias = Added | Dropped

"""What the pool answers and announces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from ophion.errors import PoolRejected
from ophion.pool.queue import PooledTransaction
from ophion.primitives.types import Address, Hash32


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


@dataclass(frozen=True, slots=True)
class Admitted:
    """The transaction is in the pool."""

    hash: Hash32


@dataclass(frozen=True, slots=True)
class Rejected:
    """The transaction is not in the pool, and why; `hash` is known unless it could not be decoded."""

    error: PoolRejected
    hash: Hash32 | None = None


Admission: TypeAlias = Admitted | Rejected


@dataclass(frozen=True, slots=True)
class Added:
    """Transactions entered the pool, in the order of arrival."""

    transactions: tuple[PooledTransaction, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """Transactions left the pool without being mined."""

    transactions: tuple[PooledTransaction, ...]
    reason: DropReason
    details: Mapping[Hash32, str] | None = None
    """More about some of them, in words."""


PoolEvent: TypeAlias = Added | Dropped


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """The three figures of `txpool_clientStatistics`."""

    max_size: int
    local_count: int
    remote_count: int


@dataclass(frozen=True, slots=True)
class PoolContent:
    """Pooled transactions by sender and nonce: in the unbroken run (pending) or behind a gap (queued)."""

    pending: dict[Address, dict[int, PooledTransaction]]
    queued: dict[Address, dict[int, PooledTransaction]]

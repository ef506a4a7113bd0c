"""Results and events of the pool."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from ophion.errors import PoolRejected
from ophion.pool.queue import PooledTransaction
from ophion.primitives.types import Hash32


class Origin(Enum):
    """Origin of a transaction."""

    LOCAL = "local"
    """A client of this node sent the transaction. Local transactions survive a restart and are evicted last."""
    REMOTE = "remote"
    """A peer sent the transaction, or a reorganisation returned it to the pool."""


class DropReason(Enum):
    """Reason why a transaction left the pool without being mined."""

    REPLACED = "replaced"
    EVICTED = "evicted"
    EXPIRED = "expired"
    STALE = "stale"
    """Another transaction with the same sender and nonce was mined."""
    INVALID = "invalid"
    """Block building failed because of the transaction."""
    NOT_PERMITTED = "not permitted"
    """At block building, the permission rules refused the sender."""


class Admitted(Struct, frozen=True):
    """Result of an admission: the transaction is in the pool."""

    hash: Hash32


class Rejected(Struct, frozen=True):
    """Result of an admission: the transaction was refused. `hash` is None if it could not be decoded."""

    error: PoolRejected
    hash: Hash32 | None = None


Admission: TypeAlias = Admitted | Rejected


def hash_or_raise(admissions: list[Admission]) -> Hash32:
    """Return the hash of a single transaction, or raise the error of its refusal."""
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
    """Explanation of the drop for some of the transactions, by transaction hash."""


PoolEvent: TypeAlias = Added | Dropped

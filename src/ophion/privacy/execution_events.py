"""Events of private execution: results by marker, in chain order."""

from __future__ import annotations

from msgspec import Struct

from ophion.primitives.types import Hash32
from ophion.privacy.payloads import MarkerPosition


class ExecutedTransaction(Struct, frozen=True):
    """A private transaction that was executed, or undone (`is_removed`). The marker identifies the transaction."""

    group: bytes
    place: MarkerPosition
    is_removed: bool = False


class ExecutorAdvanced(Struct, frozen=True):
    """The private executor has advanced. Holds results of this node's groups, in chain order."""

    executed: tuple[ExecutedTransaction, ...]
    head: Hash32

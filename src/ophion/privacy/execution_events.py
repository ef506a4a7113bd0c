"""What private execution publishes: results by their markers, in the order of the chain."""

from __future__ import annotations

from msgspec import Struct

from ophion.primitives.types import Hash32
from ophion.privacy.payloads import MarkerPlace


class Executed(Struct, frozen=True):
    """A private transaction that has been run (or undone), by its marker."""

    group: bytes
    place: MarkerPlace
    is_removed: bool = False


class Followed(Struct, frozen=True):
    """The follower has come on: what this node takes part in, in the order of the chain."""

    executed: tuple[Executed, ...]
    head: Hash32

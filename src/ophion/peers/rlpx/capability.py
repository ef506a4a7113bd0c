"""Capabilities: what two nodes may talk about, and which message ids each of them gets (networking.md 1.9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

BASE: Final = 0x10
"""The ids below belong to the p2p protocol itself."""


@dataclass(frozen=True, slots=True)
class Capability:
    """One version of a sub-protocol."""

    name: str
    version: int
    length: int
    """How many message codes it takes."""
    messages: tuple[str, ...] = field(default=(), compare=False)
    """Names of the codes from 0 on, for metrics and logs; may be shorter than `length`."""
    max_bytes: Mapping[int, int] = field(default_factory=dict, compare=False)
    """The largest payload of a code after decompression, where it is lower than that of all messages."""

    def __post_init__(self) -> None:
        if not self.name.isascii() or not 0 <= self.version <= 255 or self.length < 1:
            raise ValueError(f"not a capability: {self!r}")  # other clients read the version as one byte

    def message_name(self, code: int) -> str:
        """What to call a message of this capability."""
        return self.messages[code] if code < len(self.messages) else f"{code:#04x}"

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


class Shared(Struct, frozen=True):
    """A capability both sides have, and where its messages begin."""

    capability: Capability
    offset: int

    @property
    def end(self) -> int:
        """The first id after it."""
        return self.offset + self.capability.length


def negotiate(offered: Iterable[Capability], remote: Iterable[tuple[str, int]]) -> tuple[Shared, ...]:
    """What is shared: of each name the highest common version, names in byte order, ids without gaps."""
    theirs = frozenset(remote)
    best: dict[str, Capability] = {}
    for capability in offered:
        if (capability.name, capability.version) not in theirs:
            continue
        known = best.get(capability.name)
        if known is None or known.version < capability.version:
            best[capability.name] = capability
    shared, offset = [], BASE
    for name in sorted(best, key=str.encode):  # bytes, not letters: IBF comes before eth
        shared.append(Shared(best[name], offset))
        offset = shared[-1].end
    return tuple(shared)


def find(shared: Sequence[Shared], message_id: int) -> Shared | None:
    """Whose message an id is."""
    for one in shared:
        if one.offset <= message_id < one.end:
            return one
    return None

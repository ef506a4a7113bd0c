"""Capabilities: sub-protocol versions, and the message ids they get on a connection (networking.md 1.9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

BASE: Final = 0x10
"""First message id of capabilities. Lower ids belong to the p2p base protocol."""


@dataclass(frozen=True, slots=True)
class Capability:
    """One version of a sub-protocol: name, version and message codes."""

    name: str
    version: int
    length: int
    """Number of message codes that the sub-protocol uses."""
    messages: tuple[str, ...] = field(default=(), compare=False)
    """Message names by code, for metrics and logs. May be shorter than `length`."""
    max_bytes: Mapping[int, int] = field(default_factory=dict, compare=False)
    """Payload limit by code, after decompression. Codes without an entry have the general limit."""

    def __post_init__(self) -> None:
        if not self.name.isascii() or not 0 <= self.version <= 255 or self.length < 1:
            # the version must fit into one byte, because other clients read it as one byte
            raise ValueError(f"not a capability: {self!r}")

    def message_name(self, code: int) -> str:
        """Return the name of a message code, for logs and metrics."""
        return self.messages[code] if code < len(self.messages) else f"{code:#04x}"

    def __str__(self) -> str:
        return f"{self.name}/{self.version}"


class SharedCapability(Struct, frozen=True):
    """A capability that both nodes support, with its first message id."""

    capability: Capability
    offset: int

    @property
    def end(self) -> int:
        """The first message id after this capability."""
        return self.offset + self.capability.length


def negotiate(offered: Iterable[Capability], remote: Iterable[tuple[str, int]]) -> tuple[SharedCapability, ...]:
    """Return the highest common version of each shared capability, sorted by name and with consecutive message ids."""
    theirs = frozenset(remote)
    best: dict[str, Capability] = {}
    for capability in offered:
        if (capability.name, capability.version) not in theirs:
            continue
        known = best.get(capability.name)
        if known is None or known.version < capability.version:
            best[capability.name] = capability
    shared, offset = [], BASE
    for name in sorted(best, key=str.encode):  # the order is by bytes, so the capability IBF comes before eth
        shared.append(SharedCapability(best[name], offset))
        offset = shared[-1].end
    return tuple(shared)


def find(shared: Sequence[SharedCapability], message_id: int) -> SharedCapability | None:
    """Return the capability that a message id belongs to, or None."""
    for one in shared:
        if one.offset <= message_id < one.end:
            return one
    return None

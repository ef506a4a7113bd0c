"""What to write where other clients differ (consensus.md 0.6, 3.3).

Besu 26.1 and later write a slot for block access lists into proposals and round changes, earlier versions and the
original client do not, and neither understands the other. Ophion reads both; what it writes is configured, or follows
its peers.

GoQuorum's digests leave the round of a block out, so it takes a block of a later round for another one than ours unless
its round is written as 0. Everybody else goes by the block as it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from ophion.consensus.header_form import besu_version

_OPHION: Final = "ophion/"
_QUORUM: Final = "(quorum-v"
_FIRST_WITH_SLOT: Final = (26, 1)


class Profile(Enum):
    """Whether the slot for a block access list is written."""

    CLASSIC = "classic"
    BAL = "bal"


class ProfileChoice(Enum):
    """The configured profile."""

    CLASSIC = "classic"
    BAL = "bal"
    AUTO = "auto"
    """Whatever the connected validators understand."""


def chosen_profile(choice: ProfileChoice, clients: Iterable[str]) -> Profile:
    """The profile of one height, given the names that connected validators gave in their Hello.

    Own kind understands both and has no say. The slot is written only where all others want it.
    """
    if choice is not ProfileChoice.AUTO:
        return Profile(choice.value)
    others = _others(clients)
    return Profile.BAL if others and all(_wants_slot(client) for client in others) else Profile.CLASSIC


def hides_round(clients: Iterable[str]) -> bool:
    """Whether QBFT blocks of later rounds are sent with round 0, given those names: only where all others want it."""
    others = _others(clients)
    return bool(others) and all(_QUORUM in client for client in others)


def _others(clients: Iterable[str]) -> list[str]:
    return [client for client in clients if not client.lower().startswith(_OPHION)]


def _wants_slot(client: str) -> bool:
    version = besu_version(client)
    return version is not None and version[:2] >= _FIRST_WITH_SLOT

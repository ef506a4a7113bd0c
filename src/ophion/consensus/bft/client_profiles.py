"""Chooses message forms for peers of other client versions (consensus.md 0.6, 3.3).

Besu 26.1 and later write a slot for block access lists into proposals and round changes. Earlier versions and Pantheon
1.2 do not write this slot. Each kind of client rejects the form of the other kind. Ophion reads both forms. Ophion
writes the configured form, or the form that its peers use.

GoQuorum computes digests without the round of a block. GoQuorum treats a block of a later round as another block unless
the block is sent with round 0. Besu 21.4 to 24.10 also sends round 0 and votes on a block with any round. Later
versions of Besu seal the block as sent, so the block must contain its true round.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from ophion.consensus.bft_form_choices import WireProfileChoice
from ophion.consensus.bft_header_form import besu_version

_OPHION: Final = "ophion/"
_QUORUM: Final = "(quorum-v"
_FIRST_WITH_SLOT: Final = (26, 1)
_FIRST_WITHOUT_ROUND: Final = (21, 4)
_FIRST_WITH_ROUND: Final = (24, 12)


class WireProfile(Enum):
    """Wire profile of proposals and round changes: with or without the slot for a block access list."""

    CLASSIC = "classic"
    BAL = "bal"


def chosen_profile(choice: WireProfileChoice, clients: Iterable[str]) -> WireProfile:
    """Choose the profile of one height from the client names in the Hello messages of connected validators.

    Ophion peers do not count, because Ophion reads both forms. The slot for a block access list is written only if all
    other peers write the slot.
    """
    if choice is not WireProfileChoice.AUTO:
        return WireProfile(choice.value)
    others = _others(clients)
    return WireProfile.BAL if others and all(_wants_slot(client) for client in others) else WireProfile.CLASSIC


def hides_round(clients: Iterable[str]) -> bool:
    """Whether to send QBFT blocks of later rounds with round 0. Returns True only if a peer is GoQuorum, and all other
    peers that are not Ophion vote on such blocks.
    """
    others = _others(clients)
    return any(_QUORUM in client for client in others) and all(_votes_without_round(client) for client in others)


def _others(clients: Iterable[str]) -> list[str]:
    return [client for client in clients if not client.lower().startswith(_OPHION)]


def _wants_slot(client: str) -> bool:
    version = besu_version(client)
    return version is not None and version[:2] >= _FIRST_WITH_SLOT


def _votes_without_round(client: str) -> bool:
    version = besu_version(client)
    is_besu = version is not None and _FIRST_WITHOUT_ROUND <= version[:2] < _FIRST_WITH_ROUND
    return is_besu or _QUORUM in client

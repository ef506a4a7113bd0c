"""Reads the consensus status of a remote node and checks every value."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from ophion.cli.untrusted_text import escape_untrusted

_MAX_ENTRIES: Final = 1000
_MAX_CLOCK_AHEAD_S: Final = 1e12


class ReportedValidator(Struct, frozen=True):
    """Status of one validator, as a remote node reports it."""

    address: str
    clock_ahead_s: float | None
    is_passed_over: bool


class ReportedConsensus(Struct, frozen=True):
    """The result of `qbft_getStatus` or `ibft_getStatus` of a remote node. All texts are checked, so they are safe to
    print.
    """

    phase: str
    quorum: int
    validators: tuple[str, ...]
    disconnected: frozenset[str] | None
    """Validators that are not connected to the node; None if the node does not report connections."""
    explanation: tuple[str, ...]
    members: tuple[ReportedValidator, ...]


def read_consensus_status(answer: Any) -> ReportedConsensus | None:
    """Read a status from JSON of any shape. Returns None if the value is not a status, and omits malformed entries."""
    if not isinstance(answer, dict):
        return None
    phase, quorum = answer.get("phase"), answer.get("quorum")
    if not isinstance(phase, str) or not isinstance(quorum, int) or not 0 <= quorum <= _MAX_ENTRIES:
        return None
    disconnected = answer.get("disconnected")
    return ReportedConsensus(
        phase=escape_untrusted(phase),
        quorum=quorum,
        validators=_texts(answer.get("validators")),
        disconnected=frozenset(_texts(disconnected)) if isinstance(disconnected, list) else None,
        explanation=_texts(answer.get("explanation")),
        members=tuple(filter(None, map(_validator, _entries(answer.get("members"))))),
    )


def _entries(value: Any) -> list[Any]:
    return value[:_MAX_ENTRIES] if isinstance(value, list) else []


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(escape_untrusted(entry) for entry in _entries(value) if isinstance(entry, str))


def _validator(entry: Any) -> ReportedValidator | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("address"), str):
        return None
    lead = entry.get("clockAheadSeconds")
    clock_ahead_s = None
    if isinstance(lead, int | float) and not isinstance(lead, bool) and abs(lead) < _MAX_CLOCK_AHEAD_S:
        clock_ahead_s = float(lead)
    return ReportedValidator(
        address=escape_untrusted(entry["address"]),
        clock_ahead_s=clock_ahead_s,
        is_passed_over=entry.get("isPassedOver") is True,
    )

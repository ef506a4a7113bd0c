"""Runner for DifficultyTests: the difficulty formulas of every fork."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ophion.chainspec.forks import ForkSchedule
from ophion.consensus.difficulty import difficulty_after
from ophion.errors import DecodeError
from ophion.primitives.hexcodec import parse_number
from ophion.primitives.types import EMPTY_OMMERS_HASH
from ophion.vectors.networks import milestone_named
from ophion.vectors.outcome import Outcome, outcomes


def run_file(path: Path) -> list[Outcome]:
    """Run a file; return one outcome for each case of each fork."""

    def group_of(_: str, group: dict[str, Any]) -> Iterator[Outcome]:
        for fork, cases in group.items():
            if fork != "_info":
                yield from (_outcome(str(path), name, fork, case) for name, case in cases.items())

    return outcomes(path, group_of)


def _outcome(file: str, name: str, fork_name: str, case: dict[str, Any]) -> Outcome:
    milestone = milestone_named(fork_name)
    if milestone is None:
        return Outcome(file, name, fork_name, None, f"fork {fork_name} is not supported")
    try:
        got = difficulty_after(
            parse_number(case["parentDifficulty"]),
            parse_number(case["parentTimestamp"]),
            case["parentUncles"] not in ("0x00", f"0x{EMPTY_OMMERS_HASH.hex()}"),
            parse_number(case["currentBlockNumber"]),
            parse_number(case["currentTimestamp"]),
            ForkSchedule({milestone: 0}).at(0, 0),
        )
        expected = parse_number(case["currentDifficulty"])
    except (DecodeError, KeyError, TypeError) as error:
        return Outcome(file, name, fork_name, False, f"malformed case: {error}")
    return Outcome(file, name, fork_name, got == expected, "" if got == expected else f"expected {expected}, got {got}")

"""`HeightTimers`: the block period timer and the round timer of one height, as effects.

`RoundTiming.block_due` (round_timing.py) computes when the block period ends and the proposer starts. The clock runs in
`producer/bft_timers.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from ophion.consensus.bft.events import BftEffect, BlockTimer, CancelTimer, RoundTimer, SetTimer, TimerKind
from ophion.consensus.bft.round_timing import RoundTiming


class HeightTimers:
    """Emits effects that set timers, and records when each timer fires."""

    def __init__(self, height: int, timing: RoundTiming, emit: Callable[[BftEffect], None]) -> None:
        self.block_due: float | None = None
        """Wall time at which the block timer fires; None while the timer does not run."""
        self.expires_at: float | None = None
        """Wall time at which the timeout of the current round expires; None while the timeout does not run."""
        self._height = height
        self._timing = timing
        self._emit = emit

    def set_block(self, at: float) -> None:
        """Start the block timer."""
        self.block_due = at
        self._emit(SetTimer(TimerKind.BLOCK, at, BlockTimer(self._height)))

    def set_round(self, round_number: int, now: float) -> None:
        """Start the timeout of a round."""
        self.expires_at = now + self._timing.timeout(round_number)
        self._emit(SetTimer(TimerKind.ROUND, self.expires_at, RoundTimer(self._height, round_number)))

    def cancel_round(self) -> None:
        """Stop the timeout of the round."""
        self.expires_at = None
        self._emit(CancelTimer(TimerKind.ROUND))

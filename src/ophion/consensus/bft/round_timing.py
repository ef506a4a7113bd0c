"""Block periods and round timeouts of one height.

Timeouts double with every round, so that some round lasts longer than the slowest message (consensus.md 2.10). A cap
limits the timeouts; otherwise a network that stalled for an hour would wait another hour. At the cap all rounds have
the same length, so doubling no longer brings validators into one round. `Height` therefore stays in a capped round
until a quorum has reached it.
"""

from __future__ import annotations

from msgspec import Struct

_MAX_DOUBLINGS = 40
"""Maximum exponent of the doubling. A forged round number must not cause a huge power; honest rounds reach the cap
first.
"""


class RoundTiming(Struct, frozen=True):
    """Periods and timeouts in seconds."""

    period_s: float
    """Minimum seconds between blocks. The value may have a fraction."""
    request_timeout_s: float
    """Timeout of round 0."""
    max_timeout_s: float = 60.0
    """Maximum round timeout. The value is at least the request timeout."""
    empty_period_s: float = 0.0
    """Seconds by which a QBFT proposer delays a block without transactions; 0 for no delay (consensus.md 3.5)."""

    def timeout(self, round_number: int) -> float:
        """Return the timeout of a round."""
        doubled = self.request_timeout_s * 2.0 ** min(round_number, _MAX_DOUBLINGS)
        return min(doubled, max(self.max_timeout_s, self.request_timeout_s))

    def is_capped(self, round_number: int) -> bool:
        """Whether this round has the maximum timeout."""
        return self.timeout(round_number + 1) <= self.timeout(round_number)

    def block_due(self, parent_timestamp: int, now: float, proposed_at: float | None = None) -> float:
        """Return the time at which the block after a parent with this timestamp may be proposed.

        Timestamps are whole seconds. A period with a fraction therefore counts from `proposed_at`, the time at which
        this validator received the proposal of the parent. If that time is unknown, the period counts from now.
        """
        if self.period_s % 1 == 0:
            return parent_timestamp + self.period_s
        # take the earlier of both times: if the clock was set back, the block is still due within one period
        begin = now if proposed_at is None else min(proposed_at, now)
        return max(begin + self.period_s, now)

    def timestamp(self, at: float) -> int:
        """Return the timestamp of a block that is due at a time.

        The time is rounded to the nearest second, because timers fire a little early. With a period below a second, the
        time is rounded down, so that no block has a timestamp in the future.
        """
        return int(at) if self.period_s < 1.0 else int(at + 0.5)

    def warnings(self, starts_on_block_timer: bool) -> tuple[str, ...]:
        """Return warnings about timing values that contradict each other (scenario I-18)."""
        found = []
        if not starts_on_block_timer and self.request_timeout_s <= self.period_s:
            found.append(
                f"requesttimeoutseconds ({self.request_timeout_s:g}) does not exceed the block period "
                f"({self.period_s:g}): round 0 expires before its block is due, every block needs a round change"
            )
        if self.empty_period_s >= self.period_s + self.request_timeout_s:
            found.append(
                f"emptyblockperiodseconds ({self.empty_period_s:g}) is not below the block period + "
                f"requesttimeoutseconds ({self.period_s + self.request_timeout_s:g}): "
                "Besu validators will change rounds while the proposer waits for transactions"
            )
        return tuple(found)

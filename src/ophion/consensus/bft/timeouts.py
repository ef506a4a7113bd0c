"""How long things may take at one height.

Time-outs double with every round, so that some round lasts longer than the slowest message (consensus.md 2.10).
Doubling without end makes a network that stood still for an hour wait for another one; the cap is ours and has a
price: rounds of equal length no longer drift together by themselves. `Height` pays it by holding at the cap until a
quorum has arrived.
"""

from __future__ import annotations

from msgspec import Struct

_MAX_DOUBLINGS = 40
"""Beyond this the cap has long been reached; keeps a forged round number from making a huge power."""


class RoundTiming(Struct, frozen=True):
    """Periods and timeouts in seconds."""

    period_s: float
    """Least distance between blocks; fractions of a second are for tests."""
    request_timeout_s: float
    """Length of round 0."""
    max_timeout_s: float = 60.0
    """Longest round. Never below the request timeout itself."""
    empty_period_s: float = 0.0
    """QBFT: how long a proposer holds back a block without transactions; 0 switches that off (consensus.md 3.5)."""

    def timeout(self, round_number: int) -> float:
        """Length of a round."""
        doubled = self.request_timeout_s * 2.0 ** min(round_number, _MAX_DOUBLINGS)
        return min(doubled, max(self.max_timeout_s, self.request_timeout_s))

    def is_capped(self, round_number: int) -> bool:
        """Whether the next round would not be longer than this one."""
        return self.timeout(round_number + 1) <= self.timeout(round_number)

    def block_due(self, parent_timestamp: int, now: float) -> float:
        """When the block after a parent with that timestamp may be proposed."""
        if self.period_s < 1.0:
            # header timestamps are whole seconds, so a shorter period can only be counted from now
            return now + self.period_s
        return parent_timestamp + self.period_s

    def warnings(self, starts_on_block_timer: bool) -> tuple[str, ...]:
        """What an operator should know about these numbers (scenario I-18)."""
        found = []
        if not starts_on_block_timer and self.request_timeout_s <= self.period_s:
            found.append(
                f"requesttimeoutseconds ({self.request_timeout_s:g}) does not exceed blockperiodseconds "
                f"({self.period_s:g}): round 0 expires before its block is due, every block needs a round change"
            )
        if self.empty_period_s >= self.period_s + self.request_timeout_s:
            found.append(
                f"xemptyblockperiodseconds ({self.empty_period_s:g}) is not below blockperiodseconds + "
                f"requesttimeoutseconds ({self.period_s + self.request_timeout_s:g}): "
                "validators will change rounds while the proposer waits for transactions"
            )
        return tuple(found)

"""`TokenBucket`: a rate limiter with a burst size and a rate per second."""

from __future__ import annotations


class TokenBucket:
    """A token bucket. Callers pass in the time."""

    __slots__ = ("_at", "_burst", "_left", "_per_s")

    def __init__(self, burst: float, per_s: float) -> None:
        self._burst = burst
        self._per_s = per_s
        self._left = burst
        self._at = 0.0

    def left(self, now: float) -> float:
        """Return the number of available tokens, which is negative after `spend` has taken too many tokens."""
        self._left = min(self._burst, self._left + (now - self._at) * self._per_s)
        self._at = now
        return self._left

    def take(self, amount: float, now: float) -> bool:
        """Take tokens if enough are available. Returns whether tokens were taken."""
        if self.left(now) < amount:
            return False
        self._left -= amount
        return True

    def spend(self, amount: float, now: float) -> bool:
        """Take tokens even if too few are available. Returns whether enough tokens were available."""
        had_enough = self.left(now) >= amount
        self._left -= amount
        return had_enough

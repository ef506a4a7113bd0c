"""How much of something a peer may do: so much at once, and so much a second from then on."""

from __future__ import annotations


class TokenBucket:
    """A bucket that fills with time. Whoever asks says what time it is."""

    __slots__ = ("_at", "_left", "_most", "_per_s")

    def __init__(self, most: float, per_s: float) -> None:
        self._most = most
        self._per_s = per_s
        self._left = most
        self._at = 0.0

    def left(self, now: float) -> float:
        """What may be done now; negative when more was done than allowed."""
        self._left = min(self._most, self._left + (now - self._at) * self._per_s)
        self._at = now
        return self._left

    def take(self, amount: float, now: float) -> bool:
        """Take from it what is there; whether it was. Nothing is owed."""
        if self.left(now) < amount:
            return False
        self._left -= amount
        return True

    def spend(self, amount: float, now: float) -> bool:
        """Take from it; whether it was there. What was not is owed."""
        has_been_there = self.left(now) >= amount
        self._left -= amount
        return has_been_there

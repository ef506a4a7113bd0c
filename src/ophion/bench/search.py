"""Searches for the highest sustained rate: doubles the rate until a step fails, tries other batch sizes and
connections, then bisects.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct, field

from ophion.bench.load_step import LoadShape, LoadStep
from ophion.bench.verdict import is_sustained, limit_of
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

SHAPES: Final = (LoadShape(1, 8), LoadShape(1, 64), LoadShape(16, 8), LoadShape(128, 4))
_FIRST: Final = 100.0
_SLOWEST: Final = 1.0
_CLOSE: Final = 1.08
"""The search ends when the lowest failed rate is at most this factor above the highest sustained rate."""
_CONFIRMED: Final = 3
"""Duration of the confirming step, as a multiple of a normal step."""
_STEP_BACK: Final = 0.9
_ATTEMPTS: Final = 4

RunStep = Callable[[float, float, LoadShape], Awaitable[LoadStep]]


class SearchResult(Struct):
    """Result of a search for the highest sustained rate."""

    steps: list[LoadStep] = field(default_factory=list)
    best: LoadStep | None = None
    """The step with the highest sustained rate; None if no step was sustained."""
    limit: str = "No bottleneck found: the network sustained the highest allowed rate (--max-rate)."
    is_confirmed: bool = True
    """Whether a longer step confirmed the highest sustained rate."""


class RateSearch:
    """Finds the highest sustained rate within a time limit."""

    def __init__(self, run: RunStep, clock: Clock, step_s: float, budget_s: float, most: float | None) -> None:
        self._run = run
        self._clock = clock
        self._step_s = step_s
        self._until = clock.monotonic() + budget_s
        self._most = most
        self._found = SearchResult()
        self._shape = SHAPES[0]

    async def find(self) -> SearchResult:
        """Search for the highest sustained rate, then confirm it with a longer step."""
        good, bad = await self._raise()
        while bad is not None and good is not None and bad / good > _CLOSE and self._has_time():
            middle = (good * bad) ** 0.5
            if await self._holds(middle):
                good = middle
            else:
                bad = middle
        if good is not None:
            await self._confirm(good)
        return self._found

    async def _raise(self) -> tuple[float | None, float | None]:
        """Raise the rate until a step fails, or lower the rate until a step is sustained. Returns the highest sustained
        rate, and a higher rate that failed or was not tried in time; each may be None.
        """
        good: float | None = None
        rate = min(_FIRST, self._most or _FIRST)
        while True:
            if await self._holds(rate) or await self._holds_otherwise(rate):
                good = rate
                if rate == self._most:
                    return good, None
                rate = min(rate * 2, self._most or rate * 2)
            elif good is not None:
                return good, rate
            else:
                if rate / 2 < _SLOWEST:
                    return None, rate
                rate /= 2
                if await self._holds(rate):
                    return rate, rate * 2
            if not self._has_time():
                return good, None if good is None else rate

    async def _holds(self, rate: float, seconds: float | None = None) -> bool:
        step = await self._run(rate, seconds or self._step_s, self._shape)
        self._found.steps.append(step)
        holds = is_sustained(step)
        if not holds:
            self._found.limit = limit_of(step)
        return holds

    async def _holds_otherwise(self, rate: float) -> bool:
        """Try other batch sizes and numbers of connections at this rate. Returns whether a step sustained the rate."""
        previous, limit = self._shape, ""
        for shape in SHAPES[SHAPES.index(previous) + 1 :]:
            if not self._has_time():
                break
            limit = limit or self._found.limit
            self._shape = shape
            if await self._holds(rate):
                return True
        self._shape = previous
        self._found.limit = limit or self._found.limit
        return False

    async def _confirm(self, rate: float) -> None:
        known = self._found.limit if any(not is_sustained(step) for step in self._found.steps) else None
        for _ in range(_ATTEMPTS):
            if await self._holds(rate, self._step_s * _CONFIRMED):
                self._found.best = self._found.steps[-1]
                break
            refused, rate = rate, rate * _STEP_BACK
        else:
            sustained = (step for step in self._found.steps if step.rate < refused and is_sustained(step))
            self._found.best = max(sustained, key=lambda step: step.rate, default=None)
            self._found.is_confirmed = False
        # keep the bottleneck that the search found: a failed confirmation runs at a lower rate, where the bottleneck is
        # less clear
        self._found.limit = known or self._found.limit

    def _has_time(self) -> bool:
        return self._clock.monotonic() < self._until

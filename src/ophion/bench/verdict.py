"""Decides whether a network sustained a load, and names the bottleneck if it did not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from ophion.bench.load_step import LoadStep

_FULL: Final = 0.95
_SLOW_ANSWER_S: Final = 0.25
_LATE_SHARE: Final = 0.1
_MIN_LIMIT_S: Final = 1.0
_PERIODS: Final = 2.5
_GROWTH: Final = 1.5


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the value at a percentile of the sorted values, or None for an empty list."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def period_of(step: LoadStep) -> float:
    """Return the average number of seconds between the blocks of a load step."""
    if len(step.blocks) < 2:
        return step.seconds
    return (step.blocks[-1].seen_s - step.blocks[0].seen_s) / (len(step.blocks) - 1)


def is_sustained(step: LoadStep) -> bool:
    """Whether the network sustained the load: sent on schedule, no refusals, no late blocks, and no growing latency."""
    limit_s = max(_MIN_LIMIT_S, _PERIODS * period_of(step))
    if step.refused or step.drained_s is None or step.drained_s > limit_s or is_late(step):
        return False
    half = len(step.mined_s) // 2
    before, after = percentile(step.mined_s[:half], 0.5), percentile(step.mined_s[half:], 0.5)
    return before is None or after is None or after <= _GROWTH * before + limit_s / 4


def is_late(step: LoadStep) -> bool:
    """Whether the benchmark program could not send transactions on schedule."""
    return step.late_s > max(0.25, _LATE_SHARE * step.seconds)


def limit_of(step: LoadStep) -> str:
    """Return one sentence that names the bottleneck of this load step."""
    if step.refused:
        words, count = step.refused.most_common(1)[0]
        return f"The node refused {count} of {step.sent} transactions: {words}"
    lost = step.sent - step.mined
    if step.drained_s is None and lost:
        return (
            f"{lost} of {step.sent} transactions were accepted and never mined: what waits is more than the pool of the"
            " node holds."
        )
    full = [block for block in step.blocks if block.gas_used >= _FULL * block.gas_limit]
    if step.blocks and len(full) * 2 >= len(step.blocks):
        block = max(full, key=lambda one: one.transactions)
        return (
            f"Blocks are full: {block.transactions} transactions fill the gas limit of {block.gas_limit:,}; there is"
            f" one every {period_of(step):.2f} s."
        )
    if is_late(step):
        slow = percentile(step.answer_s, 0.5)
        if slow is not None and slow > _SLOW_ANSWER_S / 10 * max(1, step.shape.batch // 8):
            return f"The node took {slow * 1000:.0f} ms (median) to answer {step.shape}."
        return "This program could not send faster: run it on another machine, or several of them."
    largest = max((block.transactions for block in step.blocks), default=0)
    return (
        f"Blocks did not take what waited for them: at most {largest} transactions in a block, one every"
        f" {period_of(step):.2f} s, and none of them full. Making or agreeing on blocks is what takes the time."
    )

"""Makes load steps whose results simulate a network of a given capacity."""

from __future__ import annotations

from collections import Counter

from ophion.bench.load_step import Block, LoadShape, LoadStep


def step_of(
    rate: float,
    seconds: float = 4.0,
    shape: LoadShape = LoadShape(1, 8),  # noqa: B008  # Shape is immutable
    capacity: float = 1_000.0,
    period: float = 1.0,
    refused: str | None = None,
    gas_limit: int = 30_000_000,
) -> LoadStep:
    """Return a load step whose transactions wait for the next block, and longer if the network is overloaded."""
    sent = round(rate * seconds)
    step = LoadStep(rate, seconds, shape, sent=sent, answer_s=[0.002] * sent)
    for number in range(sent):
        due = number / rate
        ready = max(due, number / capacity)
        step.mined_s.append((int(ready / period) + 1) * period - due)
    last = step.mined_s[-1] + (sent - 1) / rate
    step.drained_s = max(0.0, last - seconds)
    count = max(1, round(last / period))
    each = min(rate, capacity) * period
    step.blocks = [Block(at * period, round(each), round(each) * 21_000, gas_limit) for at in range(1, count + 1)]
    if refused is not None:
        step.refused = Counter({refused: 3})
    return step

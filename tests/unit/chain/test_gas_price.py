"""Tests percentiles over counted prices."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.chain.gas_price import percentile


@pytest.mark.parametrize(
    ("prices", "share", "expected"),
    [([], 0.5, None), ([5], 0.5, 5), ([1, 2], 0.5, 2), ([1, 2, 3], 0.5, 2), ([1, 2, 3, 4], 0.5, 3), ([4, 9], 1.0, 9)],
)
def test_the_middle_is_the_element_at_the_rounded_down_position(
    prices: list[int], share: float, expected: int | None
) -> None:
    assert percentile(Counter(prices), share) == expected


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(0, 100))
def test_counting_gives_what_sorting_gives(prices: list[int], percent: int) -> None:
    position = min(int(len(prices) * (percent / 100)), len(prices) - 1)
    assert percentile(Counter(prices), percent / 100) == sorted(prices)[position]

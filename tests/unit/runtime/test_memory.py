"""Memory goes back to the system."""

from __future__ import annotations

import sys

import pytest

from ophion.runtime.memory import give_back, resident_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process occupies")
def test_what_was_freed_is_given_back() -> None:
    small = [bytes(60_000) for _ in range(4000)]
    kept = small[::50]
    full = resident_bytes()
    del small
    give_back()
    assert resident_bytes() < full - 100_000_000
    assert len(kept) == 80


def test_giving_back_nothing_does_no_harm() -> None:
    give_back()
    give_back()
    assert resident_bytes() >= 0

"""Tests clocks and entropy."""

from __future__ import annotations

import time

from ophion.runtime.clock import ManualClock, SystemClock, SystemEntropy


def test_a_manual_clock_moves_only_when_advanced() -> None:
    clock = ManualClock(wall=100.0)
    assert (clock.now(), clock.monotonic()) == (100.0, 0.0)
    clock.advance(2.5)
    assert (clock.now(), clock.monotonic()) == (102.5, 2.5)


def test_the_system_clock_is_the_machines() -> None:
    clock = SystemClock()
    assert abs(clock.now() - time.time()) < 5
    assert clock.monotonic() <= clock.monotonic()


def test_entropy_has_the_size_asked_for_and_does_not_repeat() -> None:
    entropy = SystemEntropy()
    assert len(entropy.token(16)) == 16
    assert entropy.token(16) != entropy.token(16)

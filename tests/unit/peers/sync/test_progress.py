"""The line of a long synchronisation."""

from __future__ import annotations

import logging

import pytest

from ophion.peers.sync.progress import ProgressLine


def test_a_line_every_few_seconds_with_speed_and_time_left(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    line = ProgressLine(1000, 0.0)
    for second in range(1, 12):
        line.imported(1000 + 100 * second, 3000, 50, 3, float(second))
    line.finished(3000, 20.0)
    assert caplog.messages == [
        "Synchronising: block 1,500 of 3,000 (50.0 %), 100 blocks/s, 50 transactions/s, 3 peers, 15 s left",
        "Synchronising: block 2,000 of 3,000 (66.7 %), 100 blocks/s, 50 transactions/s, 3 peers, 10 s left",
        "Synchronised: block 3,000, 2,000 blocks with 550 transactions in 20 s (100 blocks/s)",
    ]


def test_speed_is_that_of_the_last_seconds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    line = ProgressLine(0, 0.0)
    line.imported(100, 1_000_000, 0, 1, 100.0)
    line.imported(10_100, 1_000_000, 0, 1, 110.0)
    assert "1000 blocks/s" in caplog.messages[-1]
    assert "16 min 30 s left" in caplog.messages[-1]

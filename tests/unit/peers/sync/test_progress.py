"""Tests the progress log of a long synchronisation."""

from __future__ import annotations

import logging

import pytest

from ophion.peers.sync.progress import ProgressLog


def test_a_line_every_few_seconds_with_speed_and_time_left(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    line = ProgressLog(1000, 0.0)
    for second in range(1, 12):
        line.imported(1000 + 100 * second, 3000, 50, 3, float(second))
    line.finished(3000, 20.0)
    assert caplog.messages == [
        "synchronising block=1500 goal=3000 percent=50.0 blocks_per_s=100 txs_per_s=50 peers=3 remaining_s=15",
        "synchronising block=2000 goal=3000 percent=66.7 blocks_per_s=100 txs_per_s=50 peers=3 remaining_s=10",
        "synchronised block=3000 blocks=2000 txs=550 elapsed_s=20.0 blocks_per_s=100",
    ]


def test_speed_is_that_of_the_last_seconds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    line = ProgressLog(0, 0.0)
    line.imported(100, 1_000_000, 0, 1, 100.0)
    line.imported(10_100, 1_000_000, 0, 1, 110.0)
    assert "blocks_per_s=1000 " in caplog.messages[-1]
    assert "remaining_s=990" in caplog.messages[-1]

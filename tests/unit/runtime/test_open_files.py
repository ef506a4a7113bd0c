"""Tests the limit of open files."""

from __future__ import annotations

import logging

import pytest

from ophion.runtime import open_files


class Limits:
    """Replaces the limits of the operating system."""

    RLIMIT_NOFILE = 7
    RLIM_INFINITY = -1

    def __init__(self, soft: int, hard: int) -> None:
        self.now = (soft, hard)

    def getrlimit(self, which: int) -> tuple[int, int]:
        return self.now

    def setrlimit(self, which: int, limits: tuple[int, int]) -> None:
        self.now = limits


@pytest.mark.parametrize(
    ("before", "after", "warns"),
    [
        ((1024, 20_000), (1512, 20_000), False),
        ((4096, 20_000), (4096, 20_000), False),
        ((256, 1024), (1024, 1024), True),
        ((256, -1), (1512, -1), False),
        ((-1, -1), (-1, -1), False),
    ],
)
def test_the_limit_is_raised_as_far_as_needed_and_possible(
    before: tuple[int, int],
    after: tuple[int, int],
    warns: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    system = Limits(*before)
    monkeypatch.setattr(open_files, "resource", system)
    with caplog.at_level(logging.WARNING, open_files.logger.name):
        open_files.allow_open_files(1000)
    assert system.now == after
    assert bool(caplog.records) is warns

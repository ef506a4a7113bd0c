"""Tests the counting of decisions."""

from __future__ import annotations

from threading import Thread

from ophion.permissions.decision_counts import DecisionCounts


def test_what_was_said_is_counted_and_handed_on() -> None:
    verdicts = DecisionCounts()
    assert verdicts.record(None) is None
    assert verdicts.record("not listed") == "not listed"
    verdicts.add(3, 1)
    assert (verdicts.asked, verdicts.permitted, verdicts.refused) == (6, 4, 2)


def test_nothing_is_lost_between_threads() -> None:
    verdicts = DecisionCounts()

    def many() -> None:
        for _ in range(20_000):
            verdicts.record(None)

    threads = [Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts.permitted == 80_000

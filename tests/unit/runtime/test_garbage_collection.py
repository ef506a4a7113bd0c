"""The process collects no garbage during start, and finds cycles afterwards."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from ophion.runtime.garbage_collection import settle_down, while_starting


class Link:
    """An object that can be part of a cycle."""

    def __init__(self) -> None:
        self.other: Link | None = None


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # exempt the collected tests again, as tests/conftest.py does


def cycle() -> weakref.ref[Link]:
    one, two = Link(), Link()
    one.other, two.other = two, one
    return weakref.ref(one)


def test_nothing_is_looked_for_while_a_process_starts() -> None:
    while_starting()
    gc.collect()
    lost = cycle()
    links = [Link() for _ in range(20_000)]
    assert lost() is not None
    assert len(links) == 20_000


def test_cycles_of_a_running_process_are_found_and_what_was_there_before_is_left_alone() -> None:
    before = cycle()
    settle_down()
    assert gc.get_freeze_count() > 0
    later = cycle()
    links = [Link() for _ in range(60_000)]
    assert later() is None
    assert before() is not None
    assert len(links) == 60_000

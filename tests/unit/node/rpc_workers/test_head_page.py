"""Tests the memory page in which a node shows its head to its workers."""

from __future__ import annotations

import mmap
import os

import pytest

from ophion.node.rpc_workers import head_page
from ophion.node.rpc_workers.head_page import HeadPage, SharedHead


def test_another_view_of_the_page_shows_each_head_once_it_is_written() -> None:
    writer = HeadPage.create()
    reader = HeadPage(os.dup(writer.descriptor))
    for number in range(5):
        writer.write(number, bytes([number]) * 32)
        assert reader.counter[0] == number + 1
        assert reader.read() == SharedHead(number + 1, number, bytes([number]) * 32)
    reader.close()
    writer.close()


@pytest.mark.parametrize("place", [8, 16, 24, 55, 56])
def test_a_record_that_is_being_written_is_not_taken(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_page, "_MAX_READS", 3)
    page = HeadPage.create()
    page.write(7, bytes(32))
    with mmap.mmap(page.descriptor, mmap.PAGESIZE) as memory:
        memory[place] ^= 1
    with pytest.raises(TimeoutError):
        page.read()
    page.close()


def test_a_counter_that_is_not_written_yet_belongs_to_no_head(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_page, "_MAX_READS", 3)
    page = HeadPage.create()
    page.write(7, bytes(32))
    page.counter[0] = 0
    with pytest.raises(TimeoutError):
        page.read()
    page.close()

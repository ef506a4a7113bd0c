"""Retries request missing payloads from a remote enclave, at growing intervals and for a bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from ophion.enclave.interface import EnclaveUnreachable
from ophion.privacy import payload_retries as module
from ophion.privacy.payload_retries import AT_ONCE, GIVE_UP_S, LONGEST_PAUSE_S, PayloadRetries
from ophion.runtime.clock import ManualClock
from ophion.testing.virtual_loop import run_virtually


class Asked:
    """An enclave that records requests and has the given payloads."""

    def __init__(self) -> None:
        self.times: list[tuple[float, list[bytes]]] = []
        self.has: set[bytes] = set()
        self.is_away = False

    async def request_payloads(self, keys: list[bytes]) -> list[bytes]:
        self.times.append((asyncio.get_running_loop().time(), keys))
        if self.is_away:
            raise EnclaveUnreachable("nobody listens")
        return [key for key in keys if key in self.has]


def played(story: Callable[[Asked, PayloadRetries], object], seconds: float) -> tuple[Asked, PayloadRetries]:
    """Return the requests made within some time after a scenario began."""
    asked = Asked()

    async def main() -> PayloadRetries:
        retries = PayloadRetries(asked.request_payloads)
        task = asyncio.create_task(retries.run())
        await asyncio.sleep(0)
        story(asked, retries)
        await asyncio.sleep(seconds)
        task.cancel()
        return retries

    return asked, run_virtually(main(), ManualClock())


def test_pauses_grow_and_it_is_given_up_after_a_day() -> None:
    asked, retries = played(lambda _, retries: retries.missed([b"one"]), 2 * GIVE_UP_S)
    times = [at for at, _ in asked.times]
    pauses = [after - before for before, after in pairwise(times)]
    assert [round(pause) for pause in pauses[:8]] == [2, 4, 8, 16, 32, 64, 128, 256]
    assert max(pauses) == pytest.approx(LONGEST_PAUSE_S)
    assert len(times) < 10 + GIVE_UP_S / LONGEST_PAUSE_S
    assert len(retries) == 0


def test_what_turned_up_is_not_asked_for_again() -> None:
    def story(asked: Asked, retries: PayloadRetries) -> None:
        retries.missed([b"one", b"two", b"one"])
        asyncio.get_running_loop().call_later(10, lambda: asked.has.add(b"one"))

    asked, retries = played(story, 600)
    assert sum(b"one" in keys for _, keys in asked.times) == 4, "after 1, 3, 7 and 15 seconds"
    assert sum(b"two" in keys for _, keys in asked.times) > 8
    assert len(retries) == 1


def test_an_enclave_that_is_back_is_asked_at_once() -> None:
    def story(asked: Asked, retries: PayloadRetries) -> None:
        asked.is_away = True
        retries.missed([b"one"])
        asyncio.get_running_loop().call_later(1000, back, asked, retries)

    def back(asked: Asked, retries: PayloadRetries) -> None:
        asked.is_away = False
        retries.retry_now()

    asked, _ = played(story, 1003.5)
    assert [round(at) for at, _ in asked.times if at >= 999] == [1000, 1002]


def test_so_many_are_remembered_and_so_many_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REMEMBERED", 1000)
    keys = [number.to_bytes(32, "big") for number in range(5000)]

    def story(_: Asked, retries: PayloadRetries) -> None:
        for at in range(0, 5000, 100):
            retries.missed(keys[at : at + 100])

    asked, retries = played(story, 10)
    assert len(retries) == 1000
    assert len(retries._due) <= 2000
    assert max(len(wanted) for _, wanted in asked.times) <= AT_ONCE
    assert {key for _, wanted in asked.times for key in wanted} == set(keys[4000:]), "the newest stay"

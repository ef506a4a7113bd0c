"""Known members have their own rate limit; all other senders share one."""

from __future__ import annotations

import asyncio

import pytest

from ophion.enclave.peer_directory import PeerDirectory
from ophion.enclave_http import rate_limits
from ophion.enclave_http.rate_limits import UNKNOWN_SENDERS, RateExceeded, SenderRates
from ophion.runtime.clock import ManualClock
from tests.unit.enclave.test_embedded import Elsewhere


def test_a_known_member_does_not_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(rate_limits.asyncio, "sleep", sleep)
    directory = PeerDirectory()
    directory.add(Elsewhere(b"i" * 64, True), b"k" * 32)
    rates = SenderRates(directory, ManualClock())

    async def story() -> None:
        await rates.charge(b"stranger" * 4, 32 * 1024 * 1024)
        await rates.charge(b"another." * 4, 4 * 1024 * 1024)
        assert waits == [4.0, 5.0]
        await rates.charge(b"k" * 32, 1024)
        assert len(waits) == 2
        await rates.charge(UNKNOWN_SENDERS, 0)

    asyncio.run(story())


def test_a_request_that_would_wait_too_long_is_refused_and_uses_up_nothing() -> None:
    rates = SenderRates(PeerDirectory(), ManualClock())

    async def story() -> None:
        for _ in range(3):
            with pytest.raises(RateExceeded):
                await rates.charge(b"stranger" * 4, 340 * 1024 * 1024)
        await rates.charge(b"another." * 4, 1024 * 1024)

    asyncio.run(asyncio.wait_for(story(), 5))


def test_a_member_above_its_rate_leaves_slots_to_other_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """The port has 256 slots. Waiting requests of one group could otherwise fill them."""
    sleep = asyncio.sleep

    async def wait(seconds: float) -> None:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(rate_limits.asyncio, "sleep", wait)
    names = [bytes([number]) * 32 for number in range(20)]
    directory = PeerDirectory()
    for name in names:
        directory.add(Elsewhere(name * 2, True), name)
    rates = SenderRates(directory, ManualClock())
    counts = {"waiting": 0, "refused": 0}

    async def request(sender: bytes) -> None:
        try:
            counts["waiting"] += 1
            await rates.charge(sender, 16 * 1024)
        except RateExceeded:
            counts["waiting"] -= 1
            counts["refused"] += 1

    async def story() -> None:
        tasks = []
        for greedy in names[:-1]:
            await rates.charge(greedy, 16 * 1024 * 1024)
            tasks += [asyncio.create_task(request(greedy)) for _ in range(100)]
            await sleep(0)
            if greedy == names[0]:
                assert counts == {"waiting": 32, "refused": 68}
        assert counts["waiting"] == 192
        await rates.charge(names[-1], 16 * 1024)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert not rates._waiting

    asyncio.run(asyncio.wait_for(story(), 5))

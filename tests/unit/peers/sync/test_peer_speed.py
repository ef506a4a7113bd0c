"""Tests how fast peers deliver, with requests that end or do not end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

from ophion.peers.eth.peer import EthPeer
from ophion.peers.sync.peer_speed import PATIENCE_S, HelperSpeed, TargetSpeed
from ophion.runtime.clock import ManualClock
from ophion.testing.virtual_loop import run_virtually

A, B, C = (cast(EthPeer, name) for name in "abc")


def run(scenario: Callable[[HelperSpeed], Coroutine[Any, Any, None]]) -> None:
    async def story() -> None:
        await scenario(HelperSpeed([A, B]))

    run_virtually(story(), ManualClock())


def now() -> float:
    return asyncio.get_running_loop().time()


async def request(speed: HelperSpeed, peer: EthPeer, duration_s: float) -> bool:
    """Run a request. Returns whether it was answered."""
    try:
        await speed.run(peer, asyncio.sleep(duration_s))
    except TimeoutError:
        return False
    return True


def test_a_late_request_is_cancelled_while_a_faster_peer_is_there() -> None:
    async def scenario(speed: HelperSpeed) -> None:
        assert await request(speed, B, 0.01)
        late = asyncio.create_task(request(speed, A, 5))
        await asyncio.sleep(0.4)
        assert not speed.cancel_late([A, B], now())
        await asyncio.sleep(0.2)
        assert speed.cancel_late([A, B], now())
        assert not await late
        assert speed.usable([A, B], now()) == [B]
        assert speed.usable([A], now()) == [A], "a slow peer is better than none"
        await asyncio.sleep(31)
        assert speed.usable([A, B], now()) == [A, B]

    run(scenario)


def test_the_only_peer_is_never_too_late() -> None:
    async def scenario(speed: HelperSpeed) -> None:
        only = asyncio.create_task(request(speed, A, 5))
        await asyncio.sleep(4)
        assert not speed.cancel_late([A], now())
        assert await only

    run(scenario)


def test_equally_slow_peers_all_serve() -> None:
    """Peers over a slow line take seconds for each response."""

    async def scenario(speed: HelperSpeed) -> None:
        for peer in (A, B):
            assert await request(speed, peer, 0.7)
        running = [asyncio.create_task(request(speed, peer, 2.5)) for peer in (A, B)]
        await asyncio.sleep(2.4)
        assert not speed.cancel_late([A, B], now())
        assert await asyncio.gather(*running) == [True, True]

    run(scenario)


def test_of_the_peers_that_connect_later_one_at_a_time_gets_requests() -> None:
    async def scenario(speed: HelperSpeed) -> None:
        later = [cast(EthPeer, f"later {number}") for number in range(3)]
        assert speed.usable([A, B, *later], now()) == [A, B, later[0]]
        assert speed.usable([A, B, *later], now()) == [A, B, later[0]]
        await asyncio.sleep(11)
        assert len(speed.usable([A, B, *later], now())) == 4
        assert speed.usable([C], now()) == [C]

    run(scenario)


def test_import_makes_up_for_waiting() -> None:
    speed = TargetSpeed()
    for _ in range(100):
        speed.record(0.4, is_importing=False)
        speed.record(1.0, is_importing=True)
        assert not speed.is_slow
    speed.record(PATIENCE_S, is_importing=False)
    assert speed.is_slow
    speed.reset()
    assert not speed.is_slow

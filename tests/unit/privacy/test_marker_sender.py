"""Markers with the node's own key have consecutive nonces; other markers have new keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest

from ophion.errors import PoolRejected
from ophion.privacy.marker_sender import MarkerRequest, MarkerSender
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.thread_pools import InlineLanes
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import DEV_KEYS

PRECOMPILE = (126).to_bytes(20, "big")


def markers_of(node: TestCore, has_key: bool) -> MarkerSender:
    key = DEV_KEYS[2] if has_key else None
    return MarkerSender(
        node.pool, InlineLanes(), SystemEntropy(), PRECOMPILE, key, lambda one: node.queries.head_state.nonce(one)
    )


def wish(number: int, gas_limit: int = 60_000, gas_price: int = 10**9) -> MarkerRequest:
    return MarkerRequest(number.to_bytes(32, "big"), gas_price, gas_limit)


def test_the_nodes_own_key_gives_nonces_one_after_another(tmp_path: Path) -> None:
    async def main(node: TestCore) -> None:
        markers = markers_of(node, has_key=True)
        await asyncio.gather(*(markers.send(markers.draft(wish(number))) for number in range(20)))
        waiting = sorted(node.pool.transactions(), key=lambda item: item.nonce)
        assert [item.nonce for item in waiting] == list(range(20))
        assert {item.sender for item in waiting} == {DEV_KEYS[2].address}
        await node.seal()
        with pytest.raises(PoolRejected, match="Intrinsic gas"):
            await markers.send(markers.draft(wish(99, gas_limit=21_000)))
        await markers.send(markers.draft(wish(100)))
        (last,) = node.pool.transactions()
        assert last.nonce == 20, "a refused marker leaves no gap"

    with open_core(tmp_path) as node:
        asyncio.run(main(node))


def test_a_gap_that_a_refused_marker_left_is_filled_and_replaces_nothing(tmp_path: Path) -> None:
    """The next marker fills the nonce gap. A marker with a higher fee does not replace the acknowledged marker after
    the gap.
    """

    async def main(node: TestCore) -> None:
        markers = markers_of(node, has_key=True)

        def sent(*preferences: MarkerRequest) -> Awaitable[list[bytes | BaseException]]:
            drafts = [markers.draft(one) for one in preferences]
            return asyncio.gather(*(markers.send(one) for one in drafts), return_exceptions=True)

        refused, acknowledged = await sent(wish(1, gas_limit=21_000), wish(2))
        assert isinstance(refused, PoolRejected)
        later = await sent(wish(3), wish(4, gas_price=2 * 10**9))
        waiting = sorted(node.pool.transactions(), key=lambda item: item.nonce)
        assert [(item.nonce, item.hash) for item in waiting] == [(0, later[0]), (1, acknowledged), (2, later[1])]

    with open_core(tmp_path) as node:
        asyncio.run(main(node))


def test_random_keys_are_used_once_and_cannot_pay(tmp_path: Path) -> None:
    async def main(node: TestCore) -> None:
        markers = markers_of(node, has_key=False)
        with pytest.raises(PoolRejected, match="Upfront cost"):
            await markers.send(markers.draft(wish(1)))

    with open_core(tmp_path) as node:
        asyncio.run(main(node))

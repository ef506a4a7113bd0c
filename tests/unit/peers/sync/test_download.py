"""Tests downloads from peers that answer every request correctly, but as late as they can."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.native.crypto import PrivateKey
from ophion.peers.eth.messages import Code
from ophion.peers.eth.versions import ETH_68
from ophion.peers.sync import body_queue, download
from ophion.primitives import rlp
from ophion.testing.eth_node import EthNode
from ophion.testing.links import PeerLink, connect
from tests.unit.peers.eth.scenarios import run_nodes
from tests.unit.peers.sync.test_synchroniser import copied, grown

KEYS = [PrivateKey(bytes([number]) * 32) for number in range(131, 171)]
LATE_S = 4.9
"""Requests time out after five seconds."""
ANSWERS = (Code.BLOCK_HEADERS, Code.BLOCK_BODIES)


def late(wire: PeerLink, max_items: int = 1024, codes: tuple[Code, ...] = ANSWERS, delay_s: float = LATE_S) -> None:
    """Make one end answer just before the time limit, with a part of what was requested."""

    def intercept(code: int, payload: bytes) -> bytes | None:
        if code == Code.STATUS:
            return ETH_68.write_status(replace(ETH_68.read_status(payload), total_difficulty=2**60))
        if code not in codes:
            return payload
        encoded_id, body = rlp.split_list(payload, 1024)
        cut = rlp.list_of([encoded_id, rlp.list_of(rlp.split_list(body, 1024)[:max_items])])
        assert wire.other is not None
        asyncio.get_running_loop().call_later(delay_s, wire.other.deliver, code, cut)
        return None

    wire.intercept = intercept


def connect_late(slow: EthNode, learner: EthNode, number: int, **how: object) -> PeerLink:
    """Connect a peer that answers late. Returns the end at the learner."""
    here, there = connect(learner.eth, slow.eth, (KEYS[0], KEYS[number]), offers=[68], intercept=_first_status)
    late(there, **how)  # type: ignore[arg-type]
    return here


def _first_status(code: int, payload: bytes) -> bytes | None:
    return ETH_68.write_status(replace(ETH_68.read_status(payload), total_difficulty=2**60))


async def seconds_until(condition: Callable[[], bool], limit_s: float) -> float:
    """Wait until the condition holds. Returns the seconds waited."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not condition():
        assert loop.time() - began < limit_s, "the condition never held"
        await asyncio.sleep(0.05)
    return loop.time() - began


@pytest.mark.parametrize("max_items", [1, 1024])
@pytest.mark.parametrize("number", [1, 3])
def test_a_slow_target_is_replaced_by_a_faster_peer(tmp_path: Path, max_items: int, number: int) -> None:
    async def scenario(one: EthNode, slow: EthNode, learner: EthNode) -> None:
        await grown(one, 900)
        await copied(one, slow)
        for key in range(number):
            connect_late(slow, learner, 1 + key, max_items=max_items)
        await asyncio.sleep(LATE_S + 1)
        _, at_learner = connect(one.eth, learner.eth, (KEYS[30], KEYS[0]))
        await seconds_until(lambda: learner.height == 900, 6.0)
        assert at_learner.is_open

    run_nodes(tmp_path, 3, scenario)


def test_new_slow_peers_do_not_keep_a_node_from_its_fast_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new slow peer connects each second. The import takes a second for 100 blocks."""
    monkeypatch.setattr(download, "_BATCH_BLOCKS", 100)

    async def scenario(one: EthNode, slow: EthNode, learner: EthNode) -> None:
        await grown(one, 1200)
        await copied(one, slow)
        importing = learner.sync._importer.import_batch

        async def import_slowly(blocks: list) -> object:  # type: ignore[type-arg]
            await asyncio.sleep(len(blocks) / 100)
            return await importing(blocks)

        monkeypatch.setattr(learner.sync._importer, "import_batch", import_slowly)
        connected = [connect_late(slow, learner, 1, max_items=1)]
        await asyncio.sleep(LATE_S + 1)
        connect(one.eth, learner.eth, (KEYS[30], KEYS[0]))

        async def reconnecting() -> None:
            for key in range(2, 30):
                await asyncio.sleep(1)
                if len(connected) > 8:
                    connected.pop(0).close()
                connected.append(connect_late(slow, learner, key, max_items=1))

        attack = asyncio.create_task(reconnecting())
        await seconds_until(lambda: learner.height == 1200, 24.0)
        attack.cancel()

    run_nodes(tmp_path, 3, scenario)


@pytest.mark.parametrize("codes", [(Code.BLOCK_BODIES,), (Code.BLOCK_HEADERS,)])
@pytest.mark.parametrize("max_items", [1, 1024])
def test_slow_helpers_do_not_delay_the_download_from_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codes: tuple[Code, ...], max_items: int
) -> None:
    monkeypatch.setattr(download, "SKELETON_FROM", 300)
    monkeypatch.setattr(body_queue, "MAX_BODIES", 8)

    async def scenario(one: EthNode, slow: EthNode, learner: EthNode) -> None:
        await grown(one, 1200)
        await copied(one, slow)
        await one.node.seal()
        wires = []
        for key in range(12):
            _, there = connect(learner.eth, slow.eth, (KEYS[0], KEYS[1 + key]), offers=[68])
            wires.append(there)
        await asyncio.sleep(0.5)
        for there in wires:
            late(there, max_items, codes)
        connect(one.eth, learner.eth, (KEYS[30], KEYS[0]))
        await seconds_until(lambda: learner.height == 1201, 4.0)

    run_nodes(tmp_path, 3, scenario)

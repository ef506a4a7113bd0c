"""A chain of sealed blocks comes from peers without execution, whatever some of them send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.chain import FIRST_STATE_KEY, Chain
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import SnapSyncError
from ophion.native.crypto import PrivateKey
from ophion.native.exceptions import NotDownloaded
from ophion.native.store import open_store
from ophion.node.config import NodeConfig
from ophion.node.snap_sync.synchroniser import (
    DISTANCE,
    FINAL_DISTANCE,
    LONG_CHAIN_S,
    SnapSynchroniser,
)
from ophion.node.snap_sync.trusted_hashes import TrustedHashes
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.eth.messages import Code
from ophion.peers.eth.peer import EthPeer
from ophion.peers.sync.download import RECENT_BLOCKS
from ophion.primitives.header import HashedHeader
from ophion.runtime.clock import ManualClock
from ophion.runtime.thread_pools import InlineLanes
from ophion.testing.busy_chain import blocks_of, genesis_text
from ophion.testing.eth_node import EthNode, eth_node
from ophion.testing.links import PeerLink, connect
from ophion.testing.virtual_loop import run_virtually
from ophion.testing.wait_for import until
from tests.unit.node.snap_sync import state_servers
from tests.unit.node.snap_sync.state_servers import StateServer

BLOCKS = 140
OWN = PrivateKey(bytes([77]) * 32)
Intercept = Callable[[int, bytes], "bytes | None"]


class Source:
    """A generated chain."""

    def __init__(self, protocol: str, blocks: int) -> None:
        self.text = genesis_text(protocol)
        self.blocks = list(blocks_of(self.text, blocks, 5, 3))


@pytest.fixture(scope="module", params=["qbft", "ibft2", "clique"])
def source(request: pytest.FixtureRequest) -> Source:
    return Source(request.param, BLOCKS)


@pytest.fixture(scope="module")
def qbft() -> Source:
    return Source("qbft", BLOCKS)


class Followed:
    """A node that synchronises, connected to nodes with the chain."""

    def __init__(self, chain: Chain, new: EthNode, nodes: list[EthNode], clock: ManualClock) -> None:
        self.chain = chain
        self.new = new
        self.nodes = nodes
        self.wires: list[PeerLink] = []
        self.servers = [StateServer(node.chain.store, 2000) for node in nodes]
        self._clock = clock
        self._lanes = InlineLanes()

    def connect(self, *intercepts: Intercept | None) -> None:
        """Connect eth and snap. Each intercept may change the messages of one node."""
        for index, intercept in zip(range(len(self.nodes)), intercepts, strict=True):
            self.connect_one(index, intercept)

    def connect_one(self, index: int, intercept: Intercept | None = None) -> None:
        """Connect eth of one node."""
        keys = (OWN, PrivateKey(bytes([index + 1]) * 32))
        self.wires.append(connect(self.new.eth, self.nodes[index].eth, keys, intercept=intercept)[0])

    def usable(self) -> list[EthPeer]:
        """Return the peers whose best block is known."""
        return [peer for peer in self.new.eth.peers if peer.is_usable]

    async def synchronise(self, trusted_hash: bytes | None = None) -> bool:
        peers = state_servers.connect(self.servers, self.chain.store, self._lanes)
        return await SnapSynchroniser(self.chain, self.usable, peers, self._lanes, self._clock, trusted_hash).run()


def run(
    path: Path, source: Source, count: int, story: Callable[[Followed], Coroutine[Any, Any, None]], blocks: int = BLOCKS
) -> None:
    """Run a story with a new node and some nodes with the chain."""
    genesis, clock = parse_genesis(source.text), ManualClock()

    async def main() -> None:
        async with AsyncExitStack() as stack:
            names = ["new", *map(str, range(count))]
            nodes = [
                await stack.enter_async_context(eth_node(path / name, clock, NodeConfig(), genesis, synchronises=False))
                for name in names
            ]
            for node in nodes[1:]:
                await node.take(iter(source.blocks[:blocks]))
            (path / "staging").mkdir()
            with closing(open_store(path / "staging", durable=False)) as store:
                chain = Chain.open(store, genesis, engine_for(genesis.spec))
                await story(Followed(chain, nodes[0], nodes[1:], clock))

    run_virtually(main(), clock)


def check(followed: Followed, pivot: int) -> None:
    """Check that the last blocks, their receipts and indices, and the state of the pivot are those of the other
    node.
    """
    ours, theirs = followed.chain.store, followed.nodes[0].chain.store
    assert ours.head() == (theirs.canonical_hash(pivot), pivot)
    assert ours.meta(FIRST_STATE_KEY) == pivot.to_bytes(8, "big")
    assert ours.check(10) == []
    start = followed.chain.history_start
    assert start == max(0, pivot + 1 - RECENT_BLOCKS)
    for number in range(1, start):
        header = followed.chain.canonical(number)
        assert header is not None
        with pytest.raises(NotDownloaded, match=f"block {number} has not been downloaded yet"):
            ours.block_json(header.hash, True, True)
    for number in range(start, pivot + 1):
        block = theirs.canonical_hash(number)
        assert block is not None
        assert ours.block_json(block, True, True) == theirs.block_json(block, True, True)
        assert ours.block_receipts_json(block, False) == theirs.block_receipts_json(block, False)


def test_blocks_and_state_come_without_execution(source: Source, tmp_path: Path) -> None:
    async def story(followed: Followed) -> None:
        followed.connect(None)
        assert await followed.synchronise()
        is_final = followed.chain.engine.name != "clique"
        check(followed, BLOCKS - (FINAL_DISTANCE if is_final else DISTANCE))

    run(tmp_path, source, 1, story)


def altered(code: Code, place: float) -> Intercept:
    """Change one byte of large messages with this code."""

    def intercept(sent: int, payload: bytes) -> bytes:
        if sent != code or len(payload) < 200:
            return payload
        at = int(len(payload) * place)
        return payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]

    return intercept


@pytest.mark.parametrize("code", [Code.BLOCK_HEADERS, Code.RECEIPTS])
@pytest.mark.parametrize("place", [0.3, 0.9])
def test_a_peer_that_alters_blocks_is_disconnected(qbft: Source, tmp_path: Path, code: Code, place: float) -> None:
    async def story(followed: Followed) -> None:
        followed.connect(altered(code, place), None)
        assert await followed.synchronise()
        check(followed, BLOCKS - FINAL_DISTANCE)
        assert followed.wires[0].ended is not None
        assert followed.wires[0].ended[0] is DisconnectReason.BREACH
        assert followed.wires[1].ended is None

    run(tmp_path, qbft, 2, story)


def test_a_short_chain_is_left_to_execution(qbft: Source, tmp_path: Path) -> None:
    async def story(followed: Followed) -> None:
        followed.connect(None)
        assert not await followed.synchronise()
        assert followed.chain.head.number == 0

    run(tmp_path, qbft, 1, story, blocks=50)


def test_without_peers_the_node_starts(qbft: Source, tmp_path: Path) -> None:
    async def story(followed: Followed) -> None:
        assert not await followed.synchronise()

    run(tmp_path, qbft, 0, story)


def test_a_trusted_hash_is_the_pivot(qbft: Source, tmp_path: Path) -> None:
    async def story(followed: Followed) -> None:
        followed.connect(None)
        trusted = followed.nodes[0].chain.store.canonical_hash(90)
        assert await followed.synchronise(trusted)
        check(followed, 90)

    run(tmp_path, qbft, 1, story)


def test_another_pivot_follows_when_the_state_is_gone(qbft: Source, tmp_path: Path) -> None:
    async def story(followed: Followed) -> None:
        followed.connect(None)
        server, node = followed.servers[0], followed.nodes[0]
        store, server.store = server.store, None
        grown: Iterator[bytes] = iter(qbft.blocks[110:])

        def lie(code: object, request: bytes, response: bytes) -> bytes:
            if server.answered == 5:
                server.store = store
            return response

        server.lie = lie
        await node.take(grown)
        assert await followed.synchronise()
        check(followed, BLOCKS - FINAL_DISTANCE)

    run(tmp_path, qbft, 1, story, blocks=110)


@pytest.mark.parametrize("trusted_by_peer", [0, 1])
def test_a_false_ancestor_of_the_trusted_block_is_not_written(
    qbft: Source, tmp_path: Path, trusted_by_peer: int
) -> None:
    async def story(followed: Followed) -> None:
        lie = altered(Code.BLOCK_HEADERS, 0.3)
        followed.connect(*((lie, None) if trusted_by_peer else (None, lie)))
        assert await followed.synchronise(followed.nodes[0].chain.store.canonical_hash(90))
        check(followed, 90)
        assert followed.wires[trusted_by_peer].ended is None

    run(tmp_path, qbft, 2, story)


def test_a_trusted_block_of_another_chain_is_an_error(qbft: Source, tmp_path: Path) -> None:
    async def story(followed: Followed) -> None:
        followed.connect(None)
        await until(followed.usable)
        (peer,), genesis = followed.usable(), followed.chain.genesis
        theirs = followed.nodes[0].chain.store.canonical_hash
        trusted = TrustedHashes(theirs(90) or b"")
        assert await trusted.fetch(peer, genesis) == 90
        assert [trusted.hash_of(number) for number in (1, 90)] == [theirs(1), theirs(90)]
        assert trusted.hash_of(0) is trusted.hash_of(91) is None
        with pytest.raises(SnapSyncError, match="does not follow block 0"):
            await trusted.fetch(peer, HashedHeader(genesis.header, bytes(32)))

    run(tmp_path, qbft, 1, story)


@pytest.mark.parametrize("claimed", [BLOCKS + 200, 10_000])
def test_a_claimed_height_does_not_make_a_block_final(tmp_path: Path, claimed: int) -> None:
    async def story(followed: Followed) -> None:
        followed.connect(None, None)
        await until(lambda: len(followed.usable()) == 2)
        followed.usable()[0].raise_height(claimed)
        assert await followed.synchronise()
        check(followed, BLOCKS - DISTANCE)
        assert followed.chain.store.canonical_hash(BLOCKS - DISTANCE + 1) is None

    run(tmp_path, Source("clique", BLOCKS), 2, story)


def test_a_short_chain_counts_from_the_first_peer(qbft: Source, tmp_path: Path) -> None:
    async def story(followed: Followed) -> None:
        await followed.nodes[1].take(iter(qbft.blocks[50:]))
        task = asyncio.create_task(followed.synchronise())
        await asyncio.sleep(2 * LONG_CHAIN_S)
        followed.connect_one(0)
        await asyncio.sleep(LONG_CHAIN_S / 2)
        followed.connect_one(1)
        assert await task

    run(tmp_path, qbft, 2, story, blocks=50)

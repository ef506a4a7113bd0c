"""Bodies and receipts of old blocks come from honest peers, newest first, whatever other peers send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.block import decode_block
from ophion.chain.chain import Chain
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import StorageError
from ophion.native.crypto import PrivateKey
from ophion.native.exceptions import NotDownloaded, translated
from ophion.native.store import BlockHistory, StateDownload, Store, open_store
from ophion.node.config import NodeConfig
from ophion.node.snap_sync.headers import ReceivedHeaders
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.eth.messages import Code
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.requests import RequestFailed
from ophion.peers.sync.block_history import MAX_BLOCKS, BlockHistoryService, HistoryDownload
from ophion.primitives import rlp
from ophion.primitives.types import EMPTY_TRIE_ROOT
from ophion.runtime.clock import ManualClock
from ophion.runtime.thread_pools import InlineLanes
from ophion.testing.busy_chain import blocks_of, genesis_text
from ophion.testing.eth_node import EthNode, eth_node
from ophion.testing.links import PeerLink, connect
from ophion.testing.virtual_loop import run_virtually
from ophion.testing.wait_for import until

BLOCKS = 150
OWN = PrivateKey(bytes([77]) * 32)
TEXT = genesis_text("qbft")
Intercept = Callable[[int, bytes], "bytes | None"]


@pytest.fixture(scope="module")
def blocks() -> list[bytes]:
    return list(blocks_of(TEXT, BLOCKS, 2, 2))


class Story:
    """A database with headers only, and connected nodes with the blocks."""

    def __init__(self, path: Path, new: EthNode, nodes: list[EthNode]) -> None:
        self.path = path
        self.new = new
        self.nodes = nodes
        self.wires: list[PeerLink] = []
        self.store = open_store(path, durable=False)

    def connect(self, *intercepts: Intercept | None) -> None:
        """Connect some nodes in order. Each intercept may change the messages of one node."""
        for intercept in intercepts:
            index = len(self.wires)
            keys = (OWN, PrivateKey(bytes([index + 1]) * 32))
            self.wires.append(connect(self.new.eth, self.nodes[index].eth, keys, intercept=intercept)[0])

    def usable(self) -> list[EthPeer]:
        return [peer for peer in self.new.eth.peers if peer.is_usable]

    def download(self) -> HistoryDownload:
        return HistoryDownload(self.store, self.new.chain.engine, self.usable, InlineLanes())

    def check(self, start: int) -> None:
        """Check that exactly the blocks from `start` on have bodies, receipts and indices."""
        theirs = self.nodes[0].chain.store
        assert BlockHistory(self.store).start == (start if start > 1 else None)
        for number in range(1, BLOCKS + 1):
            hash = theirs.canonical_hash(number)
            assert hash is not None
            transactions = [one.hash for one in _some(theirs.body(hash)).transactions]
            if number < start:
                for read in (self.store.body, self.store.raw_receipts, self.store.block, self.store.counts):
                    with pytest.raises(NotDownloaded, match=f"block {number} .* from block {start}"):
                        read(hash)
                assert [self.store.transaction_position(one) for one in transactions] == [None] * len(transactions)
                continue
            assert self.store.block_json(hash, True, True) == theirs.block_json(hash, True, True)
            assert self.store.block_receipts_json(hash, False) == theirs.block_receipts_json(hash, False)
            for one in transactions:
                assert self.store.transaction_position(one) == theirs.transaction_position(one)


def _some(value: Any) -> Any:
    assert value is not None
    return value


def fill(store: Store, blocks: list[bytes]) -> None:
    """Write the headers, and make the last block the head."""
    genesis = parse_genesis(TEXT)
    chain = Chain.open(store, genesis, engine_for(genesis.spec))
    headers = [decode_block(raw, chain.engine).header for raw in blocks]
    ReceivedHeaders(chain).add(headers, 2_000_000_000)
    BlockHistory(store).begin(BLOCKS)
    StateDownload(store).finish(EMPTY_TRIE_ROOT, headers[-1].hash, BLOCKS, [])


def run(path: Path, blocks: list[bytes], count: int, tell: Callable[[Story], Coroutine[Any, Any, None]]) -> None:
    genesis, clock = parse_genesis(TEXT), ManualClock()

    async def main() -> None:
        async with AsyncExitStack() as stack:
            names = ["new", *map(str, range(count))]
            nodes = [
                await stack.enter_async_context(eth_node(path / name, clock, NodeConfig(), genesis, synchronises=False))
                for name in names
            ]
            for node in nodes[1:]:
                await node.take(iter(blocks))
            story = Story(path / "store", nodes[0], nodes[1:])
            with closing(story.store):
                fill(story.store, blocks)
                await tell(story)

    run_virtually(main(), clock)


def test_blocks_come_newest_first(tmp_path: Path, blocks: list[bytes]) -> None:
    async def tell(story: Story) -> None:
        story.connect(None)
        await until(story.usable)
        download = story.download()
        story.check(BLOCKS + 1)
        assert await download.step()
        story.check(BLOCKS + 1 - MAX_BLOCKS)
        assert not await download.step(lowest=BLOCKS + 1 - MAX_BLOCKS)
        assert await download.step(lowest=40)
        story.check(40)
        while await download.step():
            pass
        story.check(0)
        assert story.store.check(10)[0].startswith("state "), "only the state is not stored"

    run(tmp_path, blocks, 1, tell)


def test_a_search_for_logs_names_the_first_block_that_is_missing(tmp_path: Path, blocks: list[bytes]) -> None:
    async def tell(story: Story) -> None:
        story.connect(None)
        await until(story.usable)
        await story.download().step()
        start = BLOCKS + 1 - MAX_BLOCKS

        def search(first: int, last: int) -> bytes:
            return story.store.logs_json(first, last, [], [], 1000, 1 << 20, 10.0)

        for first, missing in ((0, 1), (20, 20), (start - 1, start - 1)):
            with pytest.raises(NotDownloaded, match=f"block {missing} .* from block {start}"):
                search(first, BLOCKS)
        assert search(0, 0) == search(start, BLOCKS) == b"[]"

    run(tmp_path, blocks, 1, tell)


def altered(code: Code) -> Intercept:
    """Change one byte in the middle of each large message with this code."""

    def intercept(sent: int, payload: bytes) -> bytes:
        if sent != code or len(payload) < 200:
            return payload
        at = len(payload) // 2
        return payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]

    return intercept


@pytest.mark.parametrize("code", [Code.BLOCK_BODIES, Code.RECEIPTS])
def test_a_lying_peer_is_disconnected(tmp_path: Path, blocks: list[bytes], code: Code) -> None:
    async def tell(story: Story) -> None:
        story.connect(altered(code))
        await until(story.usable)
        download = story.download()
        with pytest.raises(RequestFailed, match=f"no peer has block {BLOCKS}"):
            await download.step()
        ended = story.wires[0].ended
        assert ended is not None
        assert ended[0] is DisconnectReason.BREACH
        story.check(BLOCKS + 1)
        story.connect(None)
        await until(story.usable)
        while await download.step():
            pass
        story.check(0)
        assert story.wires[1].ended is None

    run(tmp_path, blocks, 2, tell)


def test_a_header_with_wrong_seals_is_fetched_again(tmp_path: Path, blocks: list[bytes]) -> None:
    """The hash of a header does not cover its seals, so a lying peer could have sent other seals."""

    async def tell(story: Story) -> None:
        theirs, engine = story.nodes[0].chain, story.new.chain.engine
        header = _some(theirs.canonical(140))
        wrong = engine.attach(header.header, [bytes(64) + b"\x01"] * 3)
        assert engine.hashed(wrong).hash == header.hash
        BlockHistory(story.store).replace_header(header.hash, wrong.encode())
        assert story.store.header(header.hash) == wrong.encode()

        def unsealed(sent: int, payload: bytes) -> bytes:
            return payload.replace(header.header.encode(), wrong.encode()) if sent == Code.BLOCK_HEADERS else payload

        story.connect(unsealed, None)
        await until(lambda: len(story.usable()) == 2)
        assert engine.unsealed([engine.hashed(wrong), header]) == [engine.hashed(wrong)]
        while await story.download().step():
            pass
        assert story.store.header(header.hash) == header.header.encode()
        story.check(0)

    run(tmp_path, blocks, 2, tell)


def test_a_peer_that_lacks_the_blocks_is_not_blamed(tmp_path: Path, blocks: list[bytes]) -> None:
    def without(sent: int, payload: bytes) -> bytes:
        if sent not in (Code.BLOCK_BODIES, Code.RECEIPTS):
            return payload
        return rlp.list_of([rlp.split_list(payload, 2)[0], rlp.EMPTY_LIST])

    async def tell(story: Story) -> None:
        story.connect(without)
        await until(story.usable)
        service = BlockHistoryService(story.download(), lambda: True)
        task = asyncio.create_task(service.run(lambda: None))
        await asyncio.sleep(100)
        story.check(BLOCKS + 1)
        assert story.wires[0].ended is None
        story.connect(None)
        await until(lambda: service.start is None)
        story.check(0)
        assert not task.done(), "a service runs as long as the node"
        task.cancel()

    run(tmp_path, blocks, 2, tell)


def test_a_killed_download_continues(tmp_path: Path, blocks: list[bytes]) -> None:
    async def tell(story: Story) -> None:
        story.connect(None)
        await until(story.usable)
        download = story.download()
        await download.step()
        task = asyncio.create_task(download.step())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        stopped = BLOCKS + 1 - MAX_BLOCKS
        story.check(stopped)
        story.store.close()
        story.store = open_store(story.path, durable=False)
        service = BlockHistoryService(story.download(), lambda: True)
        task = asyncio.create_task(service.run(lambda: None))
        await until(lambda: service.start is None)
        assert service.written < BLOCKS
        story.check(0)
        story.store.close()
        task.cancel()

    run(tmp_path, blocks, 1, tell)


def test_imports_come_first(tmp_path: Path, blocks: list[bytes]) -> None:
    async def tell(story: Story) -> None:
        story.connect(None)
        await until(story.usable)
        behind = True
        service = BlockHistoryService(story.download(), lambda: not behind)
        task = asyncio.create_task(service.run(lambda: None))
        await asyncio.sleep(60)
        story.check(BLOCKS + 1)
        behind = False
        await until(lambda: service.start is None)
        task.cancel()

    run(tmp_path, blocks, 1, tell)


def test_only_the_next_block_is_written(tmp_path: Path, blocks: list[bytes]) -> None:
    async def tell(story: Story) -> None:
        history, theirs = BlockHistory(story.store), story.nodes[0].chain.store
        story.connect(None)
        await until(story.usable)
        peer = story.usable()[0]
        header = _some(story.nodes[0].chain.canonical(BLOCKS - 1))
        body, receipts = (await peer.bodies([header]))[0].body, (await peer.receipts([header]))[0]
        with pytest.raises(StorageError, match="not the next block"), translated():
            history.put([(header.hash, body, receipts)])
        story.check(BLOCKS + 1)
        assert theirs.check(1) == []

    run(tmp_path, blocks, 1, tell)

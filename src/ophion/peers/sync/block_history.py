"""Downloads bodies and receipts of blocks whose headers are stored, newest first.

A node that has fetched a state from peers (`--sync-mode=SNAP`) starts with the headers of all blocks, but with the
bodies of the last blocks only. `BlockHistoryService` requests the other bodies and receipts while the node runs.

    lowest block with a body ─> headers below it ─> bodies and receipts of peers ─> database

Each step writes the next blocks and the number of the lowest block with a body in one transaction. So a killed process
continues with the next block. Bodies and receipts must have the roots that the stored headers name. Imports of new
blocks come first: between two steps the service pauses, and it waits while the node is behind its peers.

The hash of an IBFT 2.0 or QBFT header does not cover its seals, and most of the stored headers are proven by a later
header. So each step also verifies the seals, and replaces a header with wrong seals by the same header of another peer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from ophion.chain.block import empty_body
from ophion.consensus.engine import Engine
from ophion.errors import StorageError
from ophion.native.exceptions import translated
from ophion.native.store import BlockHistory, Store
from ophion.native.transactions import Body
from ophion.native.wire import Receipts, split_receipts
from ophion.peers.eth.messages import GetHeaders
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.requests import RequestFailed
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import EMPTY_TRIE_ROOT, Hash32
from ophion.runtime.thread_pools import Lane, Lanes

log = logging.getLogger(__name__)

MAX_BLOCKS: Final = 64
"""Maximum number of blocks in one step. Writing 64 blocks takes some milliseconds, for which a block import may wait.
"""
RETRY_S: Final = 5.0
"""Seconds to wait when no peer has the next bodies."""
_REST: Final = 0.5
"""Pause after a step, as a multiple of the step's duration."""
_LOOK_S: Final = 0.5
"""Seconds between two checks whether the node is in sync again."""
_REPORT_S: Final = 10.0
_WHAT: Final = "block history"

T = TypeVar("T")


class HistoryDownload:
    """Downloads the blocks below the lowest block with a body, one step at a time."""

    def __init__(self, store: Store, engine: Engine, eth_peers: Callable[[], list[EthPeer]], lanes: Lanes) -> None:
        """Create the download into a database. `eth_peers` returns the connected peers whose best block is known."""
        self._store = store
        self._engine = engine
        self._eth_peers = eth_peers
        self._write: Lane = lanes.write
        self._read: Lane = lanes.peers
        with translated():
            self._history = BlockHistory(store)
            (self._no_receipts,) = split_receipts(rlp.list_of((rlp.EMPTY_LIST,)), True, 1)

    @property
    def start(self) -> int | None:
        """Number of the lowest block from which on all blocks have bodies; None if no block lacks its body."""
        with translated():
            return self._history.start

    async def step(self, lowest: int = 1) -> bool:
        """Download the next blocks, down to the number `lowest`. Returns False if there is nothing left to download.

        Raises `RequestFailed` if no peer has the next block.
        """
        start = self.start
        if start is None or start <= max(lowest, 1):
            return False
        headers = await self._read.run(lambda: self._headers(start, max(lowest, 1)))
        for header in await self._read.run(lambda: self._engine.unsealed(headers)):
            await self._replace(header)
        bodies = asyncio.create_task(self._bodies(headers))
        try:
            receipts = await self._receipts(headers)
            with_bodies = await bodies
        finally:
            bodies.cancel()
        with translated():
            # bodies and receipts may be fewer than requested, because a response has a size limit
            parts = [
                (header.hash, body, found) for header, body, found in zip(headers, with_bodies, receipts, strict=False)
            ]
            await self._write.run(lambda: self._history.put(parts))
        return True

    def _headers(self, start: int, lowest: int) -> list[HashedHeader]:
        """Return the headers below the block `start`, in descending order. The headers are not cached, because nothing
        else needs the headers.
        """
        found = []
        for number in range(start - 1, max(lowest, start - MAX_BLOCKS) - 1, -1):
            block_hash = self._store.canonical_hash(number)
            raw = None if block_hash is None else self._store.header(block_hash)
            if block_hash is None or raw is None:
                raise StorageError(f"The header of block {number} is missing; run `ophion storage check`.")
            found.append(HashedHeader(Header.decode(raw), block_hash))
        return found

    async def _replace(self, header: HashedHeader) -> None:
        """Replace a stored header with wrong seals by the same header with the right seals."""

        async def request(peer: EthPeer) -> int:
            found = await peer.headers(GetHeaders(header.hash, 1))
            if not found:
                return 0
            if await self._read.run(lambda: self._engine.unsealed(found)):
                peer.useless("it sent a header with wrong seals")
                return 0
            with translated():
                await self._write.run(lambda: self._history.replace_header(header.hash, found[0].header.encode()))
            return 1

        log.warning("header with wrong seals is fetched again number=%d hash=0x%s", header.number, header.hash.hex())
        await self._ask(header, request, is_needed=True)

    async def _bodies(self, headers: list[HashedHeader]) -> list[Body]:
        """Return the bodies of the first blocks, at least of one."""
        found: dict[Hash32, Body] = {}
        for header in headers:
            body = empty_body(header.header)
            if body is not None:
                found[header.hash] = body
        wanted = [header for header in headers if header.hash not in found]

        async def request(peer: EthPeer) -> int:
            bodies = await peer.bodies(wanted)
            found.update((header.hash, one.body) for header, one in zip(wanted, bodies, strict=False))
            return len(bodies)

        if wanted:
            await self._ask(wanted[0], request, wanted[0] is headers[0])
        return _prefix(headers, found)

    async def _receipts(self, headers: list[HashedHeader]) -> list[Receipts]:
        """Return the receipts of the first blocks, at least of one."""
        found = {header.hash: self._no_receipts for header in headers if header.header.receipts_root == EMPTY_TRIE_ROOT}
        wanted = [header for header in headers if header.hash not in found]

        async def request(peer: EthPeer) -> int:
            receipts = await peer.receipts(wanted)
            found.update((header.hash, one) for header, one in zip(wanted, receipts, strict=False))
            return len(receipts)

        if wanted:
            await self._ask(wanted[0], request, wanted[0] is headers[0])
        return _prefix(headers, found)

    async def _ask(
        self, first: HashedHeader, request: Callable[[EthPeer], Coroutine[Any, Any, int]], is_needed: bool
    ) -> None:
        """Send a request to one peer after another, until a peer sends something. `first` is the first requested block.

        Raises `RequestFailed` if no peer sends anything and `is_needed` is set. `is_needed` is False if the headers of
        this step begin with blocks that need no request: `step` then writes only those.
        """
        tried: set[EthPeer] = set()
        while True:
            able = [peer for peer in self._eth_peers() if peer not in tried and peer.height >= first.number]
            if not able:
                if is_needed:
                    raise RequestFailed(_WHAT, f"no peer has block {first.number}")
                return
            peer = min(able, key=lambda one: (len(one.requests), one.response_s))
            tried.add(peer)
            try:
                if await request(peer):
                    return
            except RequestFailed as error:
                log.debug("request for old blocks failed peer=%r error=%s", peer, error)


class BlockHistoryService:
    """A service that downloads bodies and receipts of old blocks while the node runs."""

    name = "block history"

    def __init__(self, download: HistoryDownload, is_in_sync: Callable[[], bool]) -> None:
        """Create the service. `is_in_sync` returns False while the node imports blocks of its peers."""
        self._download = download
        self._is_in_sync = is_in_sync
        self.written = 0
        """Number of blocks whose bodies and receipts were written since the start of the node."""

    @property
    def start(self) -> int | None:
        """Number of the lowest block from which on all blocks have bodies; None if no block lacks its body."""
        return self._download.start

    async def run(self, ready: Callable[[], None]) -> None:
        """Download until every block has a body."""
        ready()
        if self.start is not None:
            await self._run()
        # wait forever, because a service may not end before the node
        await asyncio.get_running_loop().create_future()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        first = self.start or 0
        began = reported = loop.time()
        log.info("downloading bodies and receipts of old blocks below=%d", first)
        while True:
            if not self._is_in_sync():
                await asyncio.sleep(_LOOK_S)
                continue
            step_began = loop.time()
            try:
                if not await self._download.step():
                    break
                pause = _REST * (loop.time() - step_began)
            except RequestFailed as error:
                pause = RETRY_S
                if step_began - reported >= _REPORT_S:
                    reported = step_began
                    log.warning("old blocks are not available from the connected peers error=%s", error)
            self.written = first - (self.start or 1)
            if step_began - reported >= _REPORT_S:
                reported = step_began
                log.info("downloading bodies and receipts of old blocks below=%d", self.start or 1)
            await asyncio.sleep(pause)
        self.written = first - 1
        log.info("all blocks have bodies and receipts blocks=%d elapsed_s=%.1f", self.written, loop.time() - began)


def _prefix(headers: list[HashedHeader], found: dict[Hash32, T]) -> list[T]:
    """Return the parts of the first blocks, up to the first block whose part is missing."""
    count = next((index for index, header in enumerate(headers) if header.hash not in found), len(headers))
    return [found[header.hash] for header in headers[:count]]

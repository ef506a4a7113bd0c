"""One cycle of synchronisation: from the common ancestor up to the target's best block.

One loop starts the header requests, body requests and imports that are possible now, and waits until one request or
import ends. Headers and bodies download while blocks are executed.

Only the target is blamed for an invalid chain. Other peers ("helpers") may lack headers or bodies without blame. Slow
peers get no further requests, and a slow target is replaced (`peer_speed.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ophion.chain.events import ChainBlock
from ophion.chain.importer import ImportedBatch
from ophion.errors import InvalidBlock, OphionError
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.messages import GetHeaders
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.requests import RequestFailed
from ophion.peers.peer import FIRST_SCORE
from ophion.peers.sync.body_queue import BodyQueue, Slot
from ophion.peers.sync.header_requests import STRETCH, HeaderPlan, HeaderRange, HeadersNotLinked
from ophion.peers.sync.peer_speed import HelperSpeed, TargetSpeed
from ophion.peers.sync.sync_metrics import SyncMetrics
from ophion.primitives.header import HashedHeader

MAX_HEADERS: Final = 2048
"""Limit of headers between download and import."""
MAX_BYTES: Final = 64 * 1024 * 1024
"""Limit of body bytes between download and import. Includes bodies that are requested."""
SKELETON_FROM: Final = 2000
"""Number of missing blocks from which the target sends a skeleton of headers and all peers fill the gaps."""
RECENT_BLOCKS: Final = 128
"""Number of last blocks whose bodies every peer must have. Snap synchronisation fetches these bodies before the node
starts.
"""
_PER_PEER: Final = 2
"""Limit of concurrent header requests per peer, and of concurrent body requests per peer."""
_BATCH_BLOCKS: Final = 256
_BATCH_TRANSACTIONS: Final = 4_000
_MAX_FAILURES: Final = 5
"""Number of consecutive failed requests after which the sync cycle fails."""
_MAX_PIECES: Final = 8
"""Limit of additional requests that a helper gets to complete one range of headers."""
_MIN_FULL_BYTES: Final = 256 * 1024
"""A response with fewer bodies than requested counts as complete if its bodies have at least this size in bytes."""
_LOOK_S: Final = 0.25
"""Seconds between two checks for slow peers."""
_WHAT: Final = "synchronisation"


class TargetTooSlow(RequestFailed):
    """Raised when the import waited too long for the target, and another peer may be faster."""

    def __init__(self, blocks_per_s: float) -> None:
        super().__init__(_WHAT, "the peer is too slow")
        self.blocks_per_s = blocks_per_s


class Download:
    """Downloads headers and bodies, and imports the blocks, in one sync cycle."""

    def __init__(
        self,
        target: EthPeer,
        ancestor: HashedHeader,
        helpers: Callable[[], list[EthPeer]],
        import_batch: Callable[[list[ChainBlock]], Coroutine[Any, Any, ImportedBatch]],
        look_ahead: Callable[[list[HashedHeader]], Coroutine[Any, Any, None]],
        figures: SyncMetrics,
        goal: int | None = None,
        is_replaceable: Callable[[float], bool] = lambda blocks_per_s: False,
    ) -> None:
        """Create the download. `helpers` are all usable peers, including the target. `look_ahead` precomputes header
        data before import. `goal` is the last block; None for the target's best block. `is_replaceable` returns whether
        another peer may deliver more blocks per second than the target does.
        """
        self.imported = 0
        """Number of blocks that this cycle has imported."""
        self._target = target
        self._is_bounded = goal is not None
        self._plan = HeaderPlan(ancestor, target.height if goal is None else goal)
        self._queue = BodyQueue()
        self._helpers = helpers
        self._is_replaceable = is_replaceable
        self._now = asyncio.get_running_loop().time
        self._began = self._now()
        self._helper_speed = HelperSpeed(helpers())
        self._target_speed = TargetSpeed()
        self._import_batch = import_batch
        self._look_ahead = look_ahead
        self._figures = figures
        self._asked: dict[tuple[str, EthPeer], int] = {}
        self._last_asked: dict[EthPeer, int] = {}
        self._request_count = 0
        self._without_bodies: set[EthPeer] = set()
        """Peers without the bodies of the target's chain. This cycle requests no more bodies from such peers."""
        self._failures = 0
        self._is_importing = False
        self._is_asking_for_posts = False
        self._headers_ahead = 0
        """Number of received headers that are not in the body queue yet."""
        self._in_order = asyncio.Lock()
        self._running = 0
        """Number of requests and imports in progress."""
        self._task_ended = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None

    @property
    def goal(self) -> int:
        """Number of the last block of this sync cycle."""
        return self._plan.goal

    @property
    def last(self) -> HashedHeader:
        """The last linked header of the target's chain."""
        return self._plan.last

    async def run(self) -> None:
        """Download and import until the goal is reached.

        Raises `RequestFailed` when no peer responds, `TargetTooSlow` when another peer may be faster,
        `HeadersNotLinked` when the target's headers do not link, and `PeerMisbehaved` when the chain is invalid.
        Imported blocks stay.
        """
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self._loop()
        except BaseExceptionGroup as failures:
            raise _worst(failures) from None

    async def _loop(self) -> None:
        while True:
            self._begin_headers()
            self._begin_bodies()
            self._begin_import()
            if not self._running:
                if self._plan.is_complete and not len(self._queue):
                    return
                raise RequestFailed(_WHAT, "no peer is left to ask")
            await self._wait()

    async def _wait(self) -> None:
        """Wait until a request or an import ends. Raises `TargetTooSlow` when the target should be replaced."""
        began, is_importing = self._now(), self._is_importing
        try:
            async with asyncio.timeout(_LOOK_S):
                await self._task_ended.wait()
        except TimeoutError:
            pass
        self._task_ended.clear()
        now = self._now()
        self._target_speed.record(now - began, is_importing)
        if is_importing:
            return
        if self._helper_speed.cancel_late(self._helpers(), now):
            self._target_speed.reset()
        elif self._target_speed.is_slow:
            blocks_per_s = self.imported / (now - self._began)
            if self._is_replaceable(blocks_per_s):
                raise TargetTooSlow(blocks_per_s)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._group is not None
        self._running += 1
        self._group.create_task(work).add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running -= 1
        self._task_ended.set()

    # --- headers --------------------------------------------------------------------------------

    def _begin_headers(self) -> None:
        plan, target = self._plan, self._target
        if not plan.is_complete and not self._is_bounded:
            plan.goal = max(plan.goal, target.height)
        horizon = plan.last.number + 1 + MAX_HEADERS - len(self._queue) - self._headers_ahead
        is_far = plan.goal - plan.last.number > SKELETON_FROM
        helpers = self._helper_speed.usable(self._helpers(), self._now()) if is_far else [target]
        while True:
            if len(helpers) > 1 and plan.waits_for_posts and plan.posts_from <= min(target.height, plan.goal):
                self._begin_posts()
                return
            stretch = plan.next_stretch(horizon)
            if stretch is None:
                return
            able = helpers if stretch.last_hash is not None else [target]
            peer = self._free("headers", [one for one in able if one.height >= stretch.end - 1 or one is target])
            if peer is None:
                plan.give_back(stretch)
                return
            self._count_request("headers", peer)
            self._begin(self._fetch_headers(peer, stretch))

    def _begin_posts(self) -> None:
        if not self._is_asking_for_posts:
            self._is_asking_for_posts = True
            self._begin(self._fetch_posts())

    async def _fetch_posts(self) -> None:
        try:
            first = self._plan.posts_from
            last = min(self._target.height, self._plan.goal)
            count = min(MAX_HEADERS // STRETCH, (last - first) // STRETCH + 1)
            with self._figures.timed("posts"):
                posts = await self._target.headers(GetHeaders(first, count, STRETCH - 1))
            if not posts:
                self._target.useless("it does not have the headers it must have")
                raise RequestFailed("headers", f"no header {first}")
            self._plan.set_posts(posts)
        finally:
            self._is_asking_for_posts = False

    async def _fetch_headers(self, peer: EthPeer, stretch: HeaderRange) -> None:
        try:
            with self._figures.timed("headers"):
                headers = await self._helper_speed.run(peer, self._request_stretch(peer, stretch))
        except TimeoutError:
            self._plan.give_back(stretch)
            return
        except RequestFailed:
            self._plan.give_back(stretch)
            self._failed(peer)
            return
        finally:
            self._asked["headers", peer] -= 1
        if not headers:
            self._has_none(peer, stretch)
            return
        if len(headers) < stretch.count and peer is not self._target:
            # reject an incomplete header range: only the hash of the last header is known in advance, and without the
            # last header, the headers before it are not proven
            self._helper_speed.mark_slow(peer, self._now())
            peer.useless("it sent only a part of the requested headers")
            self._plan.give_back(stretch)
            return
        self._failures = 0
        try:
            linked = self._plan.received(stretch, headers)
        except HeadersNotLinked as error:
            if peer is self._target or error.stretch.last_hash is None:
                raise
            peer.useless(str(error))
            self._plan.give_back(error.stretch)
            return
        if linked:
            self._headers_ahead += len(linked)
            async with self._in_order:
                await self._look_ahead(linked)
                self._queue.add(linked)
            self._figures.processed["headers", "added"] += len(linked)
            self._headers_ahead -= len(linked)

    async def _request_stretch(self, peer: EthPeer, stretch: HeaderRange) -> list[HashedHeader]:
        """Request one range of headers. A helper may send the headers in several responses."""
        headers = await peer.headers(GetHeaders(stretch.first, stretch.count))
        if peer is self._target:
            return headers
        for _ in range(_MAX_PIECES):
            if not headers or len(headers) >= stretch.count:
                break
            rest = GetHeaders(stretch.first + len(headers), stretch.count - len(headers))
            more = await peer.headers(rest)
            if not more or more[0].parent_hash != headers[-1].hash:
                break
            headers += more
        return headers

    def _has_none(self, peer: EthPeer, stretch: HeaderRange) -> None:
        sure = self._target.head.height or 0
        if peer is self._target and stretch.first > sure and stretch.first == self._plan.last.number + 1:
            # the target peer has fewer blocks than its announcement suggests
            self._plan.end_here()
            peer.has_no_more_than(self._plan.last.number)
            return
        peer.useless("it does not have the headers it must have")
        self._plan.give_back(stretch)
        self._failed(peer)

    # --- bodies ---------------------------------------------------------------------------------

    def _begin_bodies(self) -> None:
        helpers: list[EthPeer] | None = None
        while (first := self._queue.first_missing) is not None and self._queue.held_bytes < MAX_BYTES:
            if helpers is None:
                able = [peer for peer in self._helpers() if peer not in self._without_bodies]
                helpers = self._helper_speed.usable(able, self._now())
            peer = self._free("bodies", [one for one in helpers if one.height >= first.number])
            if peer is None:
                return
            slots = self._queue.next_request(peer.height)
            self._count_request("bodies", peer)
            self._begin(self._fetch_bodies(peer, slots))

    async def _fetch_bodies(self, peer: EthPeer, slots: list[Slot]) -> None:
        try:
            with self._figures.timed("bodies"):
                bodies = await self._helper_speed.run(peer, peer.bodies([slot.header for slot in slots]))
        except TimeoutError:
            self._queue.received(slots, ())
            return
        except RequestFailed:
            self._queue.received(slots, ())
            self._failed(peer)
            return
        finally:
            self._asked["bodies", peer] -= 1
        self._queue.received(slots, bodies)
        self._figures.processed["bodies", "added"] += len(bodies)
        if bodies:
            self._failures = 0
            if len(bodies) < len(slots) and sum(found.size for found in bodies) < _MIN_FULL_BYTES:
                self._helper_speed.mark_slow(peer, self._now())
        elif peer is self._target and slots[0].header.number > peer.height - RECENT_BLOCKS:
            peer.useless("it does not have the bodies it must have")
            self._failed(peer)
        else:
            # an honest target lacks the bodies of old blocks for some time after its snap synchronisation
            self._without_bodies.add(peer)

    # --- import ---------------------------------------------------------------------------------

    def _begin_import(self) -> None:
        if self._is_importing:
            return
        blocks = self._queue.take_ready(_BATCH_BLOCKS, _BATCH_TRANSACTIONS)
        if blocks:
            self._is_importing = True
            self._begin(self._import(blocks))

    async def _import(self, blocks: list[ChainBlock]) -> None:
        processed = self._figures.processed
        processed["headers", "removed"] += len(blocks)
        processed["blocks", "added"] += len(blocks)
        with self._figures.timed("import"):
            batch = await self._import_batch(blocks)
        processed["blocks", "removed"] += batch.count
        self.imported += batch.count
        self._is_importing = False
        if batch.failure is not None:
            raise _verdict(batch.failure)

    # --- peer selection -------------------------------------------------------------------------

    def _free(self, kind: str, helpers: list[EthPeer]) -> EthPeer | None:
        """Return the best peer with a free slot: by score, then fewest open requests, then least recently used."""
        free = [peer for peer in helpers if peer.is_usable and self._asked.get((kind, peer), 0) < _PER_PEER]
        return min(
            free,
            key=lambda peer: (peer.peer.score < FIRST_SCORE, len(peer.requests), self._last_asked.get(peer, 0)),
            default=None,
        )

    def _count_request(self, kind: str, peer: EthPeer) -> None:
        self._asked[kind, peer] = self._asked.get((kind, peer), 0) + 1
        self._request_count += 1
        self._last_asked[peer] = self._request_count

    def _failed(self, peer: EthPeer) -> None:
        """Count a failed request. Raises `RequestFailed` if the target has disconnected, or if too many requests in a
        row failed.
        """
        self._failures += 1
        if not self._target.peer.is_open or self._failures >= _MAX_FAILURES:
            raise RequestFailed(_WHAT, f"{peer!r} does not respond")


def _verdict(failure: OphionError) -> OphionError:
    """Convert the error of an invalid block to misbehaviour of the target, unless the error is transient."""
    if isinstance(failure, InvalidBlock) and not failure.transient:
        return PeerMisbehaved(DisconnectReason.BREACH, str(failure))
    return RequestFailed(_WHAT, str(failure))


def _worst(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the most severe failure. The order is: error of this node, misbehaviour, unlinked headers, failed
    request.
    """
    found = _flat(failures)
    for kind in (RequestFailed, HeadersNotLinked, PeerMisbehaved):
        others = [one for one in found if not isinstance(one, kind)]
        if not others:
            break
        found = others
    return found[0]


def _flat(failures: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for failure in failures.exceptions:
        found.extend(_flat(failure) if isinstance(failure, BaseExceptionGroup) else [failure])
    return found

"""Produces a block as soon as there is a transaction: the development network without `--block-period`.

A transaction that reaches an idle node is built and committed at once. While a block is built and written, the pool
fills, and the next block includes all pooled transactions. So blocks become larger with the load. After a block with
many transactions the next block starts some milliseconds later, because each block has a fixed cost.

Developers and test suites expect the result of a transaction right after sending it. So the response to a sender waits
for the block, unless the sender is fast or there are many senders. A fast sender sends again right after its last
response. In both cases the response is sent on admission. A request for the receipt then waits for the block (`mined`).
Without this wait, some libraries would poll again only after another block, which never comes on an idle chain.

Seals are empty, which only the development network accepts.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from ophion.pool.events import Added, PoolEvent
from ophion.pool.queue import PooledTransaction
from ophion.primitives.types import Address, Hash32
from ophion.producer.block_assembly import Assembler

_BUILD_DEADLINE_S = 1.0
_PACES = ((64, 0.05), (8, 0.025))
"""Pairs of (transactions in a block, minimum seconds to the next block), largest number of transactions first."""
_BLOCK_TIMEOUT_S = 0.5
"""Seconds for which a caller waits for a block."""
_FAST_SENDER_S = 0.002
"""A sender that sends again within this many seconds after its last response counts as fast."""
_MANY_SENDERS = 4
_MANY_SENDERS_S = 0.01
"""If `_MANY_SENDERS` responses fall within this many seconds, senders get a response on admission."""
_KEPT_SENDERS = 1024


class InstantSealer:
    """Seals blocks with all executable transactions of the pool."""

    hashrate = 0
    guard = None

    def __init__(self, assembler: Assembler, timeout_s: float = _BLOCK_TIMEOUT_S) -> None:
        self._assembler = assembler
        self._timeout_s = timeout_s
        self._clock = assembler.clock
        self._wake = asyncio.Event()
        self._is_enabled = True
        self._is_busy = False
        self._progress: asyncio.Future[None] | None = None
        self._held: list[tuple[PooledTransaction, asyncio.Future[None]]] = []
        self._answers: deque[float] = deque(maxlen=_MANY_SENDERS)
        self._answered_at: OrderedDict[Address, float] = OrderedDict()
        self._looked_up: bool = False

    @property
    def is_enabled(self) -> bool:
        """Whether pooled transactions are mined. A stopped sealer mines nothing, even before its task has ended."""
        return self._is_enabled

    def enable(self, is_enabled: bool) -> None:
        """Start or stop mining immediately. The task of `run` ends some iterations of the event loop later."""
        self._is_enabled = is_enabled
        if is_enabled:
            self._wake.set()

    async def run(self) -> None:
        """Produce blocks until cancelled."""
        pool = self._assembler.pool
        ignore_pool = pool.events.listen(self._on_pool_event)
        pool.hold_answer = self._hold_answer
        try:
            self._wake.set()
            while True:
                await self._wake.wait()
                self._is_busy = True
                self._wake.clear()
                while self.is_enabled and pool.has_executable and await self._seal():
                    self._resolve_waiting()
                self._is_busy = False
                self._resolve_waiting()
        finally:
            pool.hold_answer = None
            ignore_pool()
            self._is_busy = False
            self._wake.clear()
            self._resolve_waiting()

    def _on_pool_event(self, event: PoolEvent) -> None:
        if isinstance(event, Added):
            self._wake.set()

    async def _seal(self) -> bool:
        """Produce one block. Returns False if no transaction of the pool can be included now."""
        started_at = self._clock.monotonic()
        built = await self._assembler.assemble(_BUILD_DEADLINE_S)
        if not built.body.transaction_count:
            return False
        await self._assembler.commit(built.header, built, started_at)
        pace_s = next((pace_s for many, pace_s in _PACES if built.body.transaction_count >= many), 0.0)
        if pace_s:
            self._resolve_waiting()
            await asyncio.sleep(started_at + pace_s - self._clock.monotonic())
        return True

    # --- waiting callers ----------------------------------------------------------------------------

    async def mined(self, hash: Hash32) -> None:
        """Wait until a pooled transaction is in a block, or until the sealer knows that the next blocks will not
        include the transaction, for a bounded time.
        """
        deadline = self._clock.monotonic() + self._timeout_s
        while self._is_imminent(hash):
            if self._progress is None:
                self._progress = asyncio.get_running_loop().create_future()
            left = deadline - self._clock.monotonic()
            await asyncio.wait({self._progress}, timeout=left)
            if left <= 0:
                return

    def _is_imminent(self, hash: Hash32) -> bool:
        """Whether a transaction is pending, and the sealer is building a block or about to begin one."""
        is_active = self._is_busy or (self.is_enabled and self._wake.is_set())
        return is_active and self._assembler.pool.get(hash) is not None

    def _hold_answer(self, item: PooledTransaction, takes_early_answer: bool) -> asyncio.Future[None] | None:
        """Return a future that delays the response to the sender, or None. The pool calls this on admission."""
        if not self.is_enabled:
            return None
        now = self._clock.monotonic()
        answers = self._answers
        has_many_senders = len(answers) == _MANY_SENDERS and now - answers[0] < _MANY_SENDERS_S
        if has_many_senders or self._is_fast(item.sender):
            self._note_answer(item.sender, now)
            return None
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()
        self._held.append((item, answer))
        loop.call_later(self._timeout_s, _finish, answer)
        return answer

    def note_lookup(self) -> None:
        """Record a request for a receipt, which shows that the client waits for a result before it sends again."""
        self._looked_up = True

    def _is_fast(self, sender: Address) -> bool:
        """Whether a sender sends again within `_FAST_SENDER_S`, without a request for a receipt since the last
        response.
        """
        if self._looked_up:
            return False
        return self._clock.monotonic() - self._answered_at.get(sender, -1.0) < _FAST_SENDER_S

    def _note_answer(self, sender: Address, now: float) -> None:
        self._looked_up = False
        self._answers.append(now)
        self._answered_at.pop(sender, None)
        self._answered_at[sender] = now
        if len(self._answered_at) > _KEPT_SENDERS:
            self._answered_at.popitem(last=False)

    def _resolve_waiting(self) -> None:
        """Resolve the futures of transactions that were mined or will not be mined soon."""
        if self._progress is not None:
            _finish(self._progress)
            self._progress = None
        if not self._held:
            return
        now = self._clock.monotonic()
        still = []
        for item, answer in self._held:
            if self._is_imminent(item.hash) and not answer.done():
                still.append((item, answer))
                continue
            self._note_answer(item.sender, now)
            _finish(answer)
        self._held = still


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

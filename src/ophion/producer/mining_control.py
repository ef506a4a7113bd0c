"""`MiningControl`: starts and stops production, holds what may change while it runs, speaks to external miners."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from ophion.chain.gas_price import FeeFloor
from ophion.errors import OphionError
from ophion.primitives.types import Address, Hash32
from ophion.producer.block_assembly import MinerSettings
from ophion.producer.instant_sealer import InstantSealer
from ophion.producer.options import MAX_EXTRA_DATA
from ophion.producer.peer_height_guard import PeerHeightGuard, ReportedHeights
from ophion.producer.pow_miner import Work, WorkPackages

log = logging.getLogger(__name__)


class CoinbaseNotSet(OphionError):
    """Mining needs a coinbase."""

    def __init__(self) -> None:
        super().__init__("Coinbase not set. Unable to start mining without a coinbase")


class CoinbaseFixed(OphionError):
    """Under proof of authority the producer's own address is rewarded and nothing else."""

    def __init__(self) -> None:
        super().__init__("The coinbase cannot be set on a proof-of-authority network")


class ProductionUnavailable(OphionError):
    """This node cannot make blocks on this network."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        super().__init__(f"This node does not make blocks on a network with {engine}")


class Sealer(Protocol):
    """One way of making blocks."""

    hashrate: int
    """Hashes per second of our own search; 0 without one."""

    @property
    def guard(self) -> PeerHeightGuard | None:
        """Under proof of authority: keeps the sealer from signing below the height of its peers."""

    async def run(self) -> None:
        """Make blocks until cancelled."""


class MiningControl:
    """Production of blocks as operators and clients see it; a service.

    `author` is the node's own address under proof of authority and None under proof of work, where the coinbase is a
    matter of choice. `desk` serves external miners and is there under proof of work only.
    """

    name = "miner"

    def __init__(
        self,
        settings: MinerSettings,
        floor: FeeFloor,
        sealer: Sealer | None,
        desk: WorkPackages | None,
        author: Address | None,
        engine_name: str,
    ) -> None:
        self.floor = floor
        """Minimum prices; `min_gas_price` and `min_priority_fee` may be set."""
        self._settings = settings
        self._sealer = sealer
        self._desk = desk
        self._author = author
        self._engine_name = engine_name
        self._is_wanted = False
        self._is_behind = False
        self._changed = asyncio.Event()

    # --- start and stop -------------------------------------------------------------------------

    @property
    def is_mining(self) -> bool:
        """Whether blocks are being made; not while this node is behind its network."""
        return self._is_wanted and not self._is_behind

    def start(self) -> None:
        """Make blocks from now on; `CoinbaseNotSet` without a coinbase."""
        if self._sealer is None:
            raise ProductionUnavailable(self._engine_name)
        if self.coinbase is None:
            raise CoinbaseNotSet
        self._is_wanted = True
        self._changed.set()

    def stop(self) -> None:
        """Make no more blocks; one that is being written is finished."""
        self._is_wanted = False
        self._changed.set()

    def follow(self, is_in_sync: bool) -> None:
        """Pause while this node is far behind its network: a block on an old head is useless."""
        if self._is_wanted and self._sealer is not None and self._is_behind == is_in_sync:
            log.info("Resuming mining operations" if is_in_sync else "Pausing mining while behind chain head")
        self._is_behind = not is_in_sync
        self._changed.set()

    def watch_peers(self, reported: ReportedHeights) -> None:
        """Sign nothing below the height that these peers report before they had time to send their blocks."""
        guard = None if self._sealer is None else self._sealer.guard
        if guard is not None:
            guard.watch(reported)

    async def run(self, ready: Callable[[], None]) -> None:
        """Run the sealer whenever mining is wanted; its failure is ours."""
        ready()
        while True:
            if self.is_mining and self._sealer is not None:
                await self._seal(self._sealer)
            else:
                await self._changed.wait()
            self._changed.clear()

    async def _seal(self, sealer: Sealer) -> None:
        sealing = asyncio.create_task(sealer.run(), name="sealing")
        changing = asyncio.create_task(self._wait_for_stop())
        try:
            await asyncio.wait({sealing, changing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changing.cancel()
            if not sealing.done():
                sealing.cancel()
            await asyncio.wait({sealing})
        if not sealing.cancelled():
            sealing.result()

    async def _wait_for_stop(self) -> None:
        while self.is_mining:
            self._changed.clear()
            await self._changed.wait()

    def mined(self, hash: Hash32) -> Awaitable[None] | None:
        """Something to wait for before saying that a pooled transaction has no receipt yet.

        None where blocks do not come at once: there "not yet" is the answer, and the next block will bring another one.
        """
        sealer = self._sealer
        return sealer.mined(hash) if self._is_wanted and isinstance(sealer, InstantSealer) else None

    # --- settings -------------------------------------------------------------------------------

    @property
    def coinbase(self) -> Address | None:
        """The rewarded address; None when none is set."""
        return self._settings.coinbase if self._author is None else self._author

    def set_coinbase(self, coinbase: Address) -> None:
        """Reward this account from the next block on; `CoinbaseFixed` under proof of authority."""
        if self._author is not None:
            raise CoinbaseFixed
        self._settings.coinbase = coinbase

    @property
    def extra_data(self) -> bytes:
        """What is put into every block."""
        return self._settings.extra_data

    def set_extra_data(self, extra_data: bytes) -> None:
        """Put this into blocks from now on; `ValueError` above 32 bytes."""
        if len(extra_data) > MAX_EXTRA_DATA:
            raise ValueError(f"extra data of {len(extra_data)} bytes; at most {MAX_EXTRA_DATA} are allowed")
        self._settings.extra_data = extra_data

    @property
    def target_gas_limit(self) -> int | None:
        """Where the gas limit of our blocks moves; None keeps it."""
        return self._settings.target_gas_limit

    def set_target_gas_limit(self, gas_limit: int | None) -> None:
        """Move the gas limit of our blocks towards this from now on."""
        self._settings.target_gas_limit = gas_limit

    # --- external miners ------------------------------------------------------------------------

    @property
    def hashrate(self) -> int:
        """Hashes per second, our own and what external miners report."""
        own = 0 if self._sealer is None else self._sealer.hashrate
        return own + (0 if self._desk is None else self._desk.reported_hashrate)

    async def get_work(self) -> Work | None:
        """Work for an external miner; None while there is none."""
        if self._desk is None or not self._is_wanted or self.coinbase is None:
            return None
        return await self._desk.work()

    async def submit_work(self, nonce: int, seal_hash: Hash32, mix_hash: Hash32) -> bool:
        """A nonce found by an external miner; whether it made a block."""
        return self._desk is not None and await self._desk.submit(nonce, seal_hash, mix_hash)

    def submit_hashrate(self, rate: int, miner: Hash32) -> bool:
        """Note the hash rate of an external miner; returns whether external mining is supported."""
        if self._desk is None:
            return False
        self._desk.report_hashrate(rate, miner)
        return True

"""`MiningControl`: starts and stops block production, holds its settings and serves external miners."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from ophion.chain.gas_price import FeeFloor
from ophion.errors import OphionError
from ophion.primitives.types import Address, Hash32
from ophion.producer.block_assembly import MinerSettings
from ophion.producer.instant_sealer import InstantSealer
from ophion.producer.options import MAX_EXTRA_DATA

if TYPE_CHECKING:
    from ophion.producer.peer_height_guard import AnnouncedRules, ConnectingNodes, PeerHeightGuard, ReportedHeights
    from ophion.producer.pow_miner import MiningWork, WorkPackages

log = logging.getLogger(__name__)


class CoinbaseNotSet(OphionError):
    """Raised when mining starts without a coinbase."""

    def __init__(self) -> None:
        super().__init__("Coinbase not set. Unable to start mining without a coinbase")


class CoinbaseFixed(OphionError):
    """Raised when a client sets the coinbase under proof of authority, where the reward goes to the producer's own
    address.
    """

    def __init__(self) -> None:
        super().__init__("The coinbase cannot be set on a proof-of-authority network")


class ProductionUnavailable(OphionError):
    """Raised when this node cannot produce blocks on this network."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        super().__init__(f"This node does not make blocks on a network with {engine}")


class Sealer(Protocol):
    """Interface of sealers, which produce blocks."""

    hashrate: int
    """Hashes per second of the node's own miner. 0 if the node does not mine."""

    @property
    def guard(self) -> PeerHeightGuard | None:
        """The guard that keeps a proof-of-authority sealer from signing below the height of its peers."""

    async def run(self) -> None:
        """Produce blocks until cancelled."""


class MiningControl:
    """Service that controls block production for operators and clients.

    `author` is the node's own address under proof of authority, and None under proof of work, where the coinbase is
    configurable. `work_packages` serves external miners, under proof of work only.
    """

    name = "miner"

    def __init__(
        self,
        settings: MinerSettings,
        floor: FeeFloor,
        sealer: Sealer | None,
        work_packages: WorkPackages | None,
        author: Address | None,
        engine_name: str,
    ) -> None:
        self.floor = floor
        """Minimum prices. Callers may set `min_gas_price` and `min_priority_fee`."""
        self._settings = settings
        self._sealer = sealer
        self._work_packages = work_packages
        self._author = author
        self._engine_name = engine_name
        self._is_wanted = False
        self._is_behind = False
        self._changed = asyncio.Event()

    # --- start and stop -------------------------------------------------------------------------

    @property
    def is_mining(self) -> bool:
        """Whether blocks are being produced. False while the node is behind its network."""
        return self._is_wanted and not self._is_behind

    def start(self) -> None:
        """Start producing blocks. Raises `ProductionUnavailable` without a sealer, and `CoinbaseNotSet`."""
        if self._sealer is None:
            raise ProductionUnavailable(self._engine_name)
        if self.coinbase is None:
            raise CoinbaseNotSet
        self._is_wanted = True
        self._apply()

    def stop(self) -> None:
        """Stop producing blocks. A block that is being written is finished."""
        self._is_wanted = False
        self._apply()

    def follow(self, is_in_sync: bool) -> None:
        """Pause while this node is not in sync, because a block on an old head is useless. Otherwise resume."""
        if self._is_wanted and self._sealer is not None and self._is_behind == is_in_sync:
            log.info("Resuming mining operations" if is_in_sync else "Pausing mining while behind chain head")
        self._is_behind = not is_in_sync
        self._apply()

    def _apply(self) -> None:
        """Start or stop the sealer. An instant sealer stops at once, so that it mines no later transaction."""
        if isinstance(self._sealer, InstantSealer):
            self._sealer.enable(self.is_mining)
        self._changed.set()

    @property
    def vote_store_problem(self) -> str | None:
        """Why the shared vote store or the security module is unavailable; None if each is available or not used."""
        problem: str | None = getattr(self._sealer, "vote_store_problem", None)
        return problem

    def watch_peers(
        self,
        reported: ReportedHeights,
        announced: AnnouncedRules = lambda: (),
        connecting: ConnectingNodes = lambda: (),
    ) -> None:
        """Delay signing while these peers report a higher head, so that the peers can send the missing blocks. After
        the start, also wait for the heads of validators that are connecting.

        Also stop before a block for which validators announce rules that this node does not know.
        """
        guard = None if self._sealer is None else self._sealer.guard
        if guard is not None:
            guard.watch(reported, announced, connecting)

    async def run(self, ready: Callable[[], None]) -> None:
        """Run the sealer while mining is enabled. Raises the error of a sealer that fails."""
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
        """Return an awaitable that ends when a pooled transaction is mined, or will not be mined soon.

        Returns None if the sealer does not produce a block for each transaction; the client must then poll.
        """
        sealer = self._sealer
        return sealer.mined(hash) if self._is_wanted and isinstance(sealer, InstantSealer) else None

    def note_lookup(self) -> None:
        """Notify an instant sealer that a client requests a receipt."""
        if isinstance(self._sealer, InstantSealer):
            self._sealer.note_lookup()

    # --- settings -------------------------------------------------------------------------------

    @property
    def coinbase(self) -> Address | None:
        """The rewarded address, or None if no address is set."""
        return self._settings.coinbase if self._author is None else self._author

    def set_coinbase(self, coinbase: Address) -> None:
        """Set the rewarded address from the next block on. Raises `CoinbaseFixed` under proof of authority."""
        if self._author is not None:
            raise CoinbaseFixed
        self._settings.coinbase = coinbase

    @property
    def extra_data(self) -> bytes:
        """Extra data of every block that this node produces."""
        return self._settings.extra_data

    def set_extra_data(self, extra_data: bytes) -> None:
        """Set the extra data of later blocks. Raises `ValueError` above 32 bytes."""
        if len(extra_data) > MAX_EXTRA_DATA:
            raise ValueError(f"extra data of {len(extra_data)} bytes; at most {MAX_EXTRA_DATA} are allowed")
        self._settings.extra_data = extra_data

    @property
    def target_gas_limit(self) -> int | None:
        """Target of the gas limit of our blocks. If None, the limit stays the same."""
        return self._settings.target_gas_limit

    def set_target_gas_limit(self, gas_limit: int | None) -> None:
        """Set the target of the gas limit of later blocks."""
        self._settings.target_gas_limit = gas_limit

    # --- external miners ------------------------------------------------------------------------

    @property
    def hashrate(self) -> int:
        """Hashes per second of the node's own miner and of external miners."""
        own = 0 if self._sealer is None else self._sealer.hashrate
        return own + (0 if self._work_packages is None else self._work_packages.reported_hashrate)

    async def get_work(self) -> MiningWork | None:
        """Return work for an external miner, or None."""
        if self._work_packages is None or not self._is_wanted or self.coinbase is None:
            return None
        return await self._work_packages.work()

    async def submit_work(self, nonce: int, seal_hash: Hash32, mix_hash: Hash32) -> bool:
        """Submit a nonce of an external miner. Returns whether the nonce sealed a block."""
        return self._work_packages is not None and await self._work_packages.submit(nonce, seal_hash, mix_hash)

    def submit_hashrate(self, rate: int, miner: Hash32) -> bool:
        """Record the hash rate of an external miner. Returns whether external mining is supported."""
        if self._work_packages is None:
            return False
        self._work_packages.report_hashrate(rate, miner)
        return True

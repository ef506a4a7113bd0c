"""`MigrationSealer`: seals with Clique up to the block before the migration, then takes part in QBFT.

Another block of the same height may still replace the last Clique block. The state machine then enters the first QBFT
height again, on the new head, and keeps its votes of that height.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from ophion.chain.chain import Chain
from ophion.chain.events import ChainEvent
from ophion.producer.clique_sealer import CliqueSealer

if TYPE_CHECKING:
    from ophion.producer.bft_driver import BftDriver

log = logging.getLogger(__name__)


class MigrationSealer:
    """Produces blocks on a chain that moves from Clique to QBFT."""

    hashrate = 0

    def __init__(self, chain: Chain, first: int, clique: CliqueSealer, bft: BftDriver) -> None:
        """Create the migration sealer. `first` is the first QBFT block."""
        self._chain = chain
        self._first = first
        self._clique = clique
        self._bft = bft
        bft.guard = clique.guard
        self.guard = clique.guard
        """The guard that both sealers share, because the node has the same peers before and after the migration."""

    async def run(self) -> None:
        """Produce blocks until cancelled."""
        while True:
            is_due = self._is_due
            log.info("sealing engine=%s first_qbft_block=%d", "qbft" if is_due else "clique", self._first)
            await self._run_while(is_due)

    @property
    def _is_due(self) -> bool:
        """Whether the next block is a QBFT block."""
        return self._chain.head.number + 1 >= self._first

    async def _run_while(self, is_due: bool) -> None:
        """Run one sealer until the head requires the other sealer. Raises the error of a sealer that fails.

        The sealer may change back to Clique: a heavier, but shorter Clique branch moves the head below the last Clique
        block.
        """
        changed = asyncio.Event()

        def on_chain_event(event: ChainEvent) -> None:
            if self._is_due != is_due:
                changed.set()

        ignore = self._chain.events.listen(on_chain_event)
        sealer: CliqueSealer | BftDriver = self._bft if is_due else self._clique
        sealing = asyncio.create_task(sealer.run(), name="sealing of one engine")
        waiting = asyncio.create_task(changed.wait())
        try:
            await asyncio.wait({sealing, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if sealing.done():
                sealing.result()
        finally:
            ignore()
            waiting.cancel()
            sealing.cancel()
            with suppress(asyncio.CancelledError):
                await sealing

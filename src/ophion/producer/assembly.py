"""From the pool to a committed block: what every way of sealing has in common."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ophion.chain.builder import Builder, BuiltBlock
from ophion.chain.chain import Chain
from ophion.chain.fees import FeeFloor
from ophion.chain.importer import Importer
from ophion.chain.validation import MAX_BLOCK_SIZE
from ophion.chainspec.engines import HeaderForm
from ophion.consensus.engine import Vote, Wishes
from ophion.native.executor import State
from ophion.native.transactions import Transaction
from ophion.permissions.permissions import Permissions
from ophion.pool.events import DropReason
from ophion.pool.pool import TxPool
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import ZERO_ADDRESS, Address, Hash32
from ophion.runtime.clock import Clock
from ophion.runtime.lanes import Lane, Lanes

log = logging.getLogger(__name__)

_MIN_TRANSACTION_GAS = 21_000
_CLOCK_TOLERANCE_S = 10.0
_LEAD_NOTED_S = 10
_HEADER_ROOM = 16_384
"""Bytes of a block that are not transactions: header, withdrawals, heads of lists."""


@dataclass(slots=True)
class MinerSettings:
    """What the producer of blocks may choose, and may change while the node runs."""

    coinbase: Address | None = None
    """Who is rewarded; None until somebody says so."""
    extra_data: bytes = b""
    target_gas_limit: int | None = None
    """The gas limit moves towards this; None keeps the parent's."""
    header_form: HeaderForm | None = None
    """BFT: the form of the first header past Shanghai; None leaves it to the forks."""


class Assembler:
    """Builds on the head from the pool, and commits what has been sealed."""

    def __init__(
        self,
        chain: Chain,
        importer: Importer,
        builder: Builder,
        pool: TxPool,
        lanes: Lanes,
        clock: Clock,
        settings: MinerSettings,
        floor: FeeFloor,
        beneficiary: Callable[[Header], Address] | None = None,
        permissions: Permissions | None = None,
    ) -> None:
        """`beneficiary` says who earns the fees of a draft, where that is not its coinbase."""
        self.chain = chain
        self.pool = pool
        self.settings = settings
        self.clock = clock
        self._importer = importer
        self._builder = builder
        self._lanes = lanes
        self._floor = floor
        self._beneficiary = beneficiary
        self._permissions = permissions or Permissions()
        self._has_noted_lead = False

    async def assemble(self, deadline_s: float) -> BuiltBlock:
        """A block on the head with the best transactions of the pool; what cannot be built leaves the pool."""
        return await self.assemble_on(self.chain.head, self.wishes(), deadline_s)

    async def assemble_on(self, parent: HashedHeader, wishes: Wishes, deadline_s: float) -> BuiltBlock:
        """As `assemble`, on a parent that may no longer be the head by the time the block is built."""
        draft = self._builder.draft(parent, wishes)
        state = self.chain.store.state(parent.header.state_root)
        filled = await self._fill(parent, draft, state, deadline_s, self._lanes.build)
        # what does not fit a block on another parent may well fit one on the head
        if self.chain.head.hash == parent.hash:
            self._drop(filled.skipped, DropReason.INVALID)
            self._drop(filled.refused, DropReason.NOT_PERMITTED)
        return filled.built

    def _drop(self, reasons: Mapping[Hash32, str], kind: DropReason) -> None:
        for tx_hash, reason in reasons.items():
            log.info("Transaction 0x%s leaves the pool: %s", tx_hash.hex(), reason)
        if reasons:
            self.pool.drop(tuple(reasons), kind, reasons)

    async def preview(self, deadline_s: float) -> BuiltBlock:
        """As `assemble`, for somebody who only looks: the pool stays as it is, and no block of ours waits for it."""
        parent = self.chain.head
        draft = self._builder.draft(parent, self.wishes())
        state = self.chain.store.state(parent.header.state_root)
        return (await self._fill(parent, draft, state, deadline_s, self._lanes.read)).built

    async def commit(self, header: Header, built: BuiltBlock, started_at: float) -> HashedHeader:
        """Hand a sealed block to the importer with the execution it left behind; returns once it is on disk."""
        hashed = self.chain.engine.hashed(header)
        importing = asyncio.ensure_future(self._importer.import_built(hashed, built.body, built.execution))
        try:
            await asyncio.shield(importing)
        except asyncio.CancelledError:
            # mining was stopped: a block that is on its way to disk is finished, or the chain would not know its head
            await importing
            raise
        log.info(
            "Produced and imported block #%d / %d tx / %d om / %d (%.1f%%) gas / (0x%s) in %.3fs",
            header.number,
            built.body.transaction_count,
            len(built.body.ommers),
            header.gas_used,
            100 * header.gas_used / header.gas_limit,
            hashed.hash.hex(),
            self.clock.monotonic() - started_at,
        )
        self._note_lead(header)
        return hashed

    def _note_lead(self, header: Header) -> None:
        """Say once that the time of the development network is not that of the clock any more."""
        lead_s = header.timestamp - self.clock.now()
        if lead_s > _LEAD_NOTED_S and self.chain.spec.is_dev and not self._has_noted_lead:
            self._has_noted_lead = True
            log.warning(
                "Blocks come faster than one a second, so their timestamps run ahead of the clock: block %d by %.0f s. "
                "--dev-equal-timestamps lets them be equal instead.",
                header.number,
                lead_s,
            )

    def check_clock(self, head: HashedHeader) -> None:
        """Say so when the next block has to wait for the clock: nothing else would explain the silence."""
        behind_s = head.timestamp - self.clock.now()
        if behind_s > _CLOCK_TOLERANCE_S:
            log.warning(
                "The clock of this node is %.0f s behind block %d; no block is made until it has caught up",
                behind_s,
                head.number,
            )

    def wishes(self, timestamp: int | None = None, vote: Vote | None = None) -> Wishes:
        """What this node wants its next block to be; the timestamp is now unless given."""
        settings = self.settings
        return Wishes(
            timestamp=int(self.clock.now()) if timestamp is None else timestamp,
            author=settings.coinbase or ZERO_ADDRESS,
            extra_data=settings.extra_data,
            vote=vote,
            target_gas_limit=settings.target_gas_limit,
            fixed_base_fee=self._floor.min_gas_price,
            header_form=settings.header_form,
        )

    async def _fill(self, parent: HashedHeader, draft: Header, state: State, deadline_s: float, lane: Lane) -> _Filled:
        # no block holds more transactions than its gas pays for, so there is no point in offering more
        most = draft.gas_limit // _MIN_TRANSACTION_GAS + 1
        room = MAX_BLOCK_SIZE - _HEADER_ROOM
        candidates: list[Transaction] = []
        hashes: list[Hash32] = []
        for item in self.pool.best(draft.base_fee_per_gas or 0):
            room -= item.size
            if room < 0 or len(candidates) >= most:
                break
            candidates.append(item.transaction)
            hashes.append(item.hash)
        beneficiary = None if self._beneficiary is None else self._beneficiary(draft)

        def work() -> _Filled:
            refusals = self._permissions.refusals(parent, state, candidates)
            chosen = _permitted(candidates, refusals)
            offered = [candidates[position] for position in chosen]
            built = self._builder.fill(draft, state, offered, deadline_s, beneficiary)
            return _Filled(
                built,
                {hashes[chosen[position]]: reason for position, reason in built.skipped},
                {hashes[position]: reason for position, reason in refusals.items()},
            )

        return await lane.run(work)


@dataclass(frozen=True, slots=True)
class _Filled:
    """A block, and why transactions that were offered are not in it."""

    built: BuiltBlock
    skipped: Mapping[Hash32, str]
    refused: Mapping[Hash32, str]


def _permitted(candidates: Sequence[Transaction], refusals: Mapping[int, str]) -> Sequence[int]:
    """Positions of what may be built: without what is refused, and without what its sender sent behind that."""
    if not refusals:
        return range(len(candidates))
    stopped: set[Address] = set()
    chosen = []
    for position, transaction in enumerate(candidates):
        if position in refusals:
            stopped.add(transaction.sender)
        elif transaction.sender not in stopped:
            chosen.append(position)
    return chosen

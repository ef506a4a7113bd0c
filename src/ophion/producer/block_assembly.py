"""Builds a block from the pool and commits it after sealing; shared by all sealers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ophion.chain.block_builder import BlockBuilder, BuiltBlock
from ophion.chain.chain import Chain
from ophion.chain.events import ChainBlock
from ophion.chain.gas_price import FeeFloor
from ophion.chain.importer import Importer
from ophion.chain.validation import MAX_BLOCK_SIZE
from ophion.chainspec.consensus_parameters import HeaderForm
from ophion.consensus.engine import BlockPreferences, Vote
from ophion.errors import OphionError
from ophion.native.crypto import keccak256
from ophion.native.exceptions import NativeError
from ophion.native.executor import State
from ophion.native.transactions import Body, Transaction
from ophion.permissions.permissions import Permissions
from ophion.pool.events import DropReason
from ophion.pool.pool import TxPool
from ophion.pool.queue import PooledTransaction
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import ZERO_ADDRESS, Address, Hash32
from ophion.producer.incremental_builder import HEADER_BYTES, BuildPlan, FilledBlock, IncrementalBuilder, permitted
from ophion.runtime.clock import Clock
from ophion.runtime.thread_pools import Lane, Lanes

log = logging.getLogger(__name__)

_MIN_TRANSACTION_GAS = 21_000
_SLACK_S = 1
"""Seconds by which the timestamp of a block built early may be older than the clock when the block is due."""
_CLOCK_TOLERANCE_S = 10.0
_LEAD_NOTED_S = 10


class MinerSettings(Struct):
    """Settings of the block producer, changeable at runtime."""

    coinbase: Address | None = None
    """Address that receives the fees. None before an address is set."""
    extra_data: bytes = b""
    target_gas_limit: int | None = None
    """Target to which the gas limit moves. If None, the gas limit stays that of the parent."""
    header_form: HeaderForm | None = None
    """Header form of the first BFT block after Shanghai. None means the default form of its fork."""


class Assembler:
    """Builds blocks on the head from the pool, and commits sealed blocks."""

    def __init__(
        self,
        chain: Chain,
        importer: Importer,
        builder: BlockBuilder,
        pool: TxPool,
        lanes: Lanes,
        clock: Clock,
        settings: MinerSettings,
        floor: FeeFloor,
        beneficiary: Callable[[Header], Address] | None = None,
        permissions: Permissions | None = None,
    ) -> None:
        """Create the assembler. `beneficiary` returns the address that earns the fees of a draft header, if that
        address is not the coinbase.
        """
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
        self.on_produced: Callable[[HashedHeader, BuiltBlock], None] | None = None
        """Called after each block that this node has produced and committed."""
        self._has_noted_lead = False
        self._growing: IncrementalBuilder | None = None
        self._unfinished: PooledTransaction | None = None

    # --- building early -------------------------------------------------------------------------

    def begin_early(
        self, parent: HashedHeader, state: State | None, preferences: BlockPreferences, due: float, whole_s: float
    ) -> None:
        """Begin the block on `parent` before it is due. The block is finished at `due` (monotonic time).

        `state` is given if the parent is not on disk yet. Does nothing if the block has been begun. If its header
        cannot be known yet, `assemble` builds the whole block when it is due.
        """
        growing = self._growing
        if growing is not None and growing.plan.parent.hash == parent.hash and not growing.is_closed:
            return
        self.discard_early()
        try:
            draft = self._builder.draft(parent, preferences)
            if state is None:
                state = self.chain.store.state(self.chain.root_after(parent.header))
        except (OphionError, NativeError) as error:
            log.debug("incremental block build not started error=%s", error)
            return
        plan = BuildPlan(parent, state, draft, self._beneficiary_of(draft), due, whole_s)
        self._growing = IncrementalBuilder(
            plan,
            self.chain,
            self._builder,
            self.pool,
            self._permissions,
            self._lanes,
            self.clock,
            self._unfinished,
        )
        self._unfinished = None

    def discard_early(self) -> None:
        """Discard the block that was begun before it is due."""
        if self._growing is not None:
            self._growing.close()
            self._growing = None

    async def _prebuilt(self, parent: HashedHeader, preferences: BlockPreferences) -> FilledBlock | None:
        """Finish the block that was begun early. Returns None if there is none for this parent and time, or it must be
        rebuilt.
        """
        growing, self._growing = self._growing, None
        if growing is None:
            return None
        planned = growing.plan.draft.timestamp
        if growing.plan.parent.hash != parent.hash or preferences.timestamp > planned + _SLACK_S:
            growing.close()
            return None
        # keep the timestamp of the early build, even if the next second has begun
        draft = self._builder.draft(parent, replace(preferences, timestamp=planned))
        filled = await growing.finish(draft, self._beneficiary_of(draft))
        self._unfinished = growing.unfinished
        return filled

    def _beneficiary_of(self, draft: Header) -> Address:
        return draft.coinbase if self._beneficiary is None else self._beneficiary(draft)

    # --- building when due ----------------------------------------------------------------------

    async def assemble(self, deadline_s: float) -> BuiltBlock:
        """Build a block on the head with the best transactions. Removes unusable transactions from the pool."""
        return await self.assemble_on(self.chain.head, self.preferences(), deadline_s)

    async def assemble_on(self, parent: HashedHeader, preferences: BlockPreferences, deadline_s: float) -> BuiltBlock:
        """Build a block with the best transactions on `parent`, which may stop being the head during the build."""
        filled = await self._prebuilt(parent, preferences)
        if filled is None:
            draft = self._builder.draft(parent, preferences)
            state = self.chain.store.state(self.chain.root_after(parent.header))
            filled = await self._fill(parent, draft, state, deadline_s, self._lanes.build)
        # drop skipped transactions only on the current head, because a block on a new head may include them
        if self.chain.head.hash == parent.hash:
            self._drop(filled.skipped, DropReason.INVALID)
            self._drop(filled.refused, DropReason.NOT_PERMITTED)
        return filled.built

    def produce_inline(self, deadline_s: float) -> bool:
        """Build and commit a block in the calling thread, for a development node whose write lane is idle.

        Returns False, and changes nothing, if there are no candidates, or not all fit into a block before the deadline.
        """
        started_at, parent = self.clock.monotonic(), self.chain.head
        draft = self._builder.draft(parent, self.preferences())
        state = self.chain.store.state(self.chain.root_after(parent.header))
        filled = self._filling(parent, draft, state, deadline_s)()
        built = filled.built
        if filled.skipped or filled.refused or not built.body.transaction_count:
            return False
        encoded = built.header.encode()
        hashed = HashedHeader(built.header, keccak256(encoded))
        self._importer.import_built_inline(hashed, built.body, built.execution, encoded)
        self._report_produced(hashed, built, started_at)
        return True

    def _drop(self, reasons: Mapping[Hash32, str], kind: DropReason) -> None:
        for tx_hash, reason in reasons.items():
            log.info("transaction dropped from the pool hash=0x%s reason=%s", tx_hash.hex(), reason)
        if reasons:
            self.pool.drop(tuple(reasons), kind, reasons)

    async def preview(self, deadline_s: float) -> BuiltBlock:
        """Build a block like `assemble`, without changing the pool or delaying block production."""
        parent = self.chain.head
        draft = self._builder.draft(parent, self.preferences())
        state = self.chain.store.state(self.chain.root_after(parent.header))
        return (await self._fill(parent, draft, state, deadline_s, self._lanes.read)).built

    async def commit(self, header: Header, built: BuiltBlock, started_at: float) -> HashedHeader:
        """Import a sealed block with its execution result. Returns when the block is on disk."""
        hashed = self.chain.engine.hashed(header)
        importing = asyncio.ensure_future(self._importer.import_built(hashed, built.body, built.execution))
        try:
            await asyncio.shield(importing)
        except asyncio.CancelledError:
            # mining has stopped: finish writing the block, so that the chain knows its head
            await importing
            raise
        self._report_produced(hashed, built, started_at)
        return hashed

    def _report_produced(self, hashed: HashedHeader, built: BuiltBlock, started_at: float) -> None:
        header = hashed.header
        if self.on_produced is not None:
            self.on_produced(hashed, built)
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

    async def commit_sealed(self, header: Header, body: Body) -> None:
        """Import a block that another node of this signer has built."""
        await self._importer.import_block(ChainBlock(self.chain.engine.hashed(header), body))

    def _note_lead(self, header: Header) -> None:
        """Warn once if blocks of the development network are produced so fast that timestamps, which rise by at least a
        second per block, are ahead of the clock. Does not warn if blocks may have the timestamp of their parent.
        """
        lead_s = header.timestamp - self.clock.now()
        if lead_s <= _LEAD_NOTED_S or not self.chain.spec.is_dev or self._has_noted_lead:
            return
        parent = self.chain.header(header.parent_hash)
        if parent is not None and header.timestamp > parent.timestamp:
            self._has_noted_lead = True
            log.warning(
                "block timestamps run ahead of the clock: --dev-equal-timestamps avoids it number=%d ahead_s=%.0f",
                header.number,
                lead_s,
            )

    def check_clock(self, head: HashedHeader) -> None:
        """Warn if the clock is behind the head's timestamp, so that the next block has to wait."""
        behind_s = head.timestamp - self.clock.now()
        if behind_s > _CLOCK_TOLERANCE_S:
            log.warning(
                "clock is behind the head: no block is produced until it catches up number=%d behind_s=%.0f",
                head.number,
                behind_s,
            )

    def preferences(self, timestamp: int | None = None, vote: Vote | None = None) -> BlockPreferences:
        """Return the preferences for the next block. The default timestamp is the current time."""
        settings = self.settings
        return BlockPreferences(
            timestamp=int(self.clock.now()) if timestamp is None else timestamp,
            author=settings.coinbase or ZERO_ADDRESS,
            extra_data=settings.extra_data,
            vote=vote,
            target_gas_limit=settings.target_gas_limit,
            fixed_base_fee=self._floor.min_gas_price,
            header_form=settings.header_form,
        )

    async def _fill(
        self, parent: HashedHeader, draft: Header, state: State, deadline_s: float, lane: Lane
    ) -> FilledBlock:
        return await lane.run(self._filling(parent, draft, state, deadline_s))

    def _filling(
        self, parent: HashedHeader, draft: Header, state: State, deadline_s: float
    ) -> Callable[[], FilledBlock]:
        """Choose candidates from the pool, and return the job that executes them."""
        # offer at most one transaction more than the gas limit admits in one block
        most = draft.gas_limit // _MIN_TRANSACTION_GAS + 1
        free_bytes = MAX_BLOCK_SIZE - HEADER_BYTES
        candidates: list[Transaction] = []
        hashes: list[Hash32] = []
        for item in self.pool.best(draft.base_fee_per_gas or 0):
            free_bytes -= item.size
            if free_bytes < 0 or len(candidates) >= most:
                break
            candidates.append(item.transaction)
            hashes.append(item.hash)
        beneficiary = self._beneficiary_of(draft)

        def work() -> FilledBlock:
            refusals = self._permissions.refusals(parent, state, candidates)
            chosen = permitted(candidates, refusals)
            offered = [candidates[position] for position in chosen]
            built = self._builder.fill(draft, state, offered, deadline_s, beneficiary)
            return FilledBlock(
                built,
                {hashes[chosen[position]]: reason for position, reason in built.skipped},
                {hashes[position]: reason for position, reason in refusals.items()},
            )

        return work

"""`DevNode`: the operations of a development node that edit the chain (cheat codes): snapshots, time, mining, state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ophion.chain.block_builder import BlockBuilder, BuiltBlock
from ophion.chain.block_environment import chain_rules
from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chain.events import ChainEvent
from ophion.chain.fork_choice import HeadChange
from ophion.chain.importer import Importer
from ophion.chain.queries import ChainQueries
from ophion.consensus.engine import BlockPreferences
from ophion.dev.clock import ClockState, DevClock
from ophion.dev.engine import DevEngine, NextHeader
from ophion.dev.head_control import HeadControl
from ophion.dev.sealer import DevSealer
from ophion.native.executor import AccountOverride
from ophion.native.transactions import Transaction
from ophion.pool.events import DropReason
from ophion.pool.pool import TxPool
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address, Hash32
from ophion.producer.block_assembly import Assembler

if TYPE_CHECKING:
    from ophion.dev.dumped_chain import DumpedBlock
    from ophion.dev.execution_observer import ExecutionObserver
    from ophion.dev.fork.remote_state import Fork
    from ophion.wallet.unsigned_transaction import UnsignedTransaction

_BUILD_DEADLINE_S = 30.0


class Snapshot(Struct, frozen=True):
    """The values that a revert restores: head, state, pool, clock and settings."""

    head: HashedHeader
    edited_root: Hash32 | None
    pool: tuple[Transaction, ...]
    clock: ClockState
    asked: NextHeader
    coinbase: Address | None
    chain_id: int
    mode: tuple[bool, float]


class Identity(Struct, frozen=True):
    """Preset, instance id and version that a development node reports to tools."""

    preset: str | None = None
    instance_id: Hash32 = bytes(32)
    """Random id of this run of the node. Tools such as Hardhat plugins store their manifests under this id."""
    client_version: str | None = None


class DevNode:
    """The operations behind the RPC methods of a development node, such as `anvil_*` and `evm_*`. All methods run on
    the event loop.
    """

    def __init__(
        self,
        chain: Chain,
        importer: Importer,
        builder: BlockBuilder,
        queries: ChainQueries,
        pool: TxPool,
        assembler: Assembler,
        engine: DevEngine,
        clock: DevClock,
        sealer: DevSealer,
        identity: Identity,
    ) -> None:
        self.chain = chain
        self.queries = queries
        self.pool = pool
        self.clock = clock
        self.engine = engine
        self.sealer = sealer
        self.identity = identity
        self.head = HeadControl(chain, importer, builder, engine)
        self.impersonated: set[Address] = set()
        self.impersonates_all = False
        self.signatures: dict[bytes, Address] = {}
        """Addresses that ecrecover returns, by signature (`anvil_impersonateSignature`)."""
        self.mines_failing = identity.preset is not None
        """Whether `eth_sendTransaction` without gas mines a transaction that fails, as Anvil and Hardhat's node do."""
        self.serves_hardhat = False
        """Whether a client has asked for `hardhat_metadata`, as hardhat-ethers does."""
        self.logs_requests = True
        self.observer: ExecutionObserver | None = None
        self.fork: Fork | None = None
        """The fork that this chain continues, or None."""
        self.base_root: Hash32 | None = None
        """Root of the edited state of the first block on a fork; None if the header's root applies."""
        self.balances: Sequence[tuple[Address, int]] = ()
        """Balances of the development accounts on a fork."""
        self.instance_id = identity.instance_id
        self._assembler = assembler
        self._snapshots: dict[int, Snapshot] = {}
        self._last_snapshot = -1
        clock.last = chain.head.timestamp
        chain.events.listen(self._on_chain_event, is_early=True)

    def observe(self, observer: ExecutionObserver) -> None:
        """Report all further calls and blocks of this node to `observer`."""
        self.observer = observer
        self._assembler.on_produced = observer.on_block

    def _on_chain_event(self, event: ChainEvent) -> None:
        if getattr(event, "blocks", None) or getattr(event, "added", None):
            self.clock.on_block(event.head.timestamp)
            self.engine.on_block()
        else:
            self.clock.last = event.head.timestamp

    # --- snapshots ------------------------------------------------------------------------------

    async def snapshot(self) -> int:
        """Save the state of the chain. Returns the id of the snapshot."""
        async with self.sealer.head_lock:
            return self.save(self.chain.head, self.head.edited_root)

    def save(self, head: HashedHeader, edited_root: Hash32 | None) -> int:
        """Save a snapshot with this head, which may not be committed yet. The caller ensures that the head does not
        move.
        """
        pool = self.pool
        self._last_snapshot += 1
        self._snapshots[self._last_snapshot] = Snapshot(
            head=head,
            edited_root=edited_root,
            pool=tuple(item.transaction for item in pool.transactions()) if len(pool) else (),
            clock=self.clock.state(),
            asked=replace(self.engine.next),
            coinbase=self._assembler.settings.coinbase,
            chain_id=self.chain.spec.chain_id,
            mode=(self.sealer.is_automatic, self.sealer.interval_s),
        )
        return self._last_snapshot

    def saved(self, number: int) -> Snapshot | None:
        """Return a snapshot, or None when the id is unknown."""
        return self._snapshots.get(number)

    def snapshots(self) -> dict[int, HashedHeader]:
        """Return the head of each existing snapshot, by id."""
        return {number: snapshot.head for number, snapshot in self._snapshots.items()}

    async def revert(self, number: int) -> bool:
        """Return to a snapshot. Deletes this snapshot and all later snapshots. Returns False when the id is unknown."""
        async with self.sealer.head_lock:
            snapshot = self._snapshots.get(number)
            if snapshot is None:
                return False
            self.restore_settings(number, snapshot)
            await self.head.rewind(snapshot.head, snapshot.edited_root)
            if len(self.pool) or snapshot.pool:
                self.pool.readmit(snapshot.pool)
            return True

    def restore_settings(self, number: int, snapshot: Snapshot) -> None:
        """Restore clock, mining mode and header values of a snapshot. Deletes this snapshot and all later snapshots."""
        for later in [one for one in self._snapshots if one >= number]:
            del self._snapshots[later]
        self.engine.next = replace(snapshot.asked)
        self._assembler.settings.coinbase = snapshot.coinbase
        if snapshot.chain_id != self.chain.spec.chain_id:
            self._use_chain_id(snapshot.chain_id)
        if snapshot.mode != (self.sealer.is_automatic, self.sealer.interval_s):
            self.sealer.set_mode(*snapshot.mode)
        self.clock.restore(snapshot.clock, snapshot.head.timestamp)

    # --- blocks ---------------------------------------------------------------------------------

    async def mine(self, count: int = 1, interval: int | None = None, is_first_normal: bool = False) -> None:
        """Mine `count` blocks, `interval` seconds apart. Pending transactions go into the first blocks.

        The first block is also `interval` seconds after the current time, unless `is_first_normal` is set.
        """
        async with self.sealer.head_lock:
            made = 0
            while made < count and (made == 0 or self.pool.has_executable or self.clock.exact is not None):
                if interval is not None and (made or not is_first_normal):
                    self.clock.increase(interval)
                await self.sealer.make_block_locked()
                made += 1
            if made == count:
                return
            step = self.clock.interval if interval is None else interval
            await self.head.add_empty(count - made, self._assembler.preferences(), step or 0)
            if interval:
                self.clock.increase(interval * (count - made))

    def preferences(self) -> BlockPreferences:
        """Return the values that the block producer chooses for the next block."""
        return self._assembler.preferences()

    async def add_block(self, *transactions: Transaction) -> BuiltBlock:
        """Mine a block with exactly these transactions, by `HeadControl.add_block`."""
        async with self.sealer.head_lock:
            return await self.head.add_block(transactions, self._assembler.preferences(), _BUILD_DEADLINE_S)

    async def add_built(self, blocks: Sequence[tuple[HashedHeader, BuiltBlock]]) -> None:
        """Commit a sequence of blocks that was built on the head."""
        async with self.sealer.head_lock:
            await self.head.add_built(blocks)

    async def mine_pending(self) -> None:
        """Mine all pending transactions at once, in as many blocks as needed. Does nothing if automatic mining
        is off.
        """
        while self.sealer.is_automatic and self.pool.has_executable:
            async with self.sealer.head_lock:
                started_at = self.clock.monotonic()
                built = await self._assembler.assemble(_BUILD_DEADLINE_S)
                if not built.body.transaction_count:
                    return
                await self._assembler.commit(built.header, built, started_at)

    async def mine_at(self, timestamp: int | None) -> None:
        """Mine one block. A `timestamp` other than None sets the timestamp of the block."""
        async with self.sealer.head_lock:
            if timestamp is not None:
                self.clock.set_next(timestamp)
            await self.sealer.make_block_locked()

    def set_automine(self, is_on: bool) -> None:
        """Switch automatic mining on or off.

        Switching it on ends interval mining. While both are off, blocks are mined on demand.
        """
        self.sealer.set_mode(is_on, 0.0 if is_on else self.sealer.interval_s)

    def set_interval(self, seconds: float) -> None:
        """Mine a block every `seconds`; 0 stops interval mining. In both cases, automatic mining is switched off."""
        self.sealer.set_mode(False, seconds)

    # --- state ----------------------------------------------------------------------------------

    async def edit(self, *changes: AccountOverride) -> None:
        """Change accounts in the state of the head. Queries of `latest` see the change at once."""
        async with self.sealer.head_lock:
            await self.head.edit(changes)

    async def change(self, make: Callable[[], Sequence[AccountOverride]]) -> None:
        """Compute changes from the current state and apply them, both under one lock."""
        async with self.sealer.head_lock:
            await self.head.edit(make())

    async def restore(self, blocks: Sequence[DumpedBlock], changes: Sequence[AccountOverride]) -> bool:
        """Replace the chain by the blocks of a state dump and change accounts, with `HeadControl.restore`."""
        async with self.sealer.head_lock:
            return await self.head.restore(blocks, changes)

    async def set_chain_id(self, chain_id: int) -> None:
        """Change the chain id of all later transactions."""
        async with self.sealer.head_lock:
            self._use_chain_id(chain_id)
            self.chain.rewind(self.chain.tip)

    def _use_chain_id(self, chain_id: int) -> None:
        chain = self.chain
        chain.spec = self.queries.spec = replace(chain.spec, chain_id=chain_id)
        self._use_rules()

    def _use_rules(self) -> None:
        self.chain.rules = chain_rules(self.chain.spec, is_relaxed=True, signatures=tuple(self.signatures.items()))

    def announce(self) -> None:
        """Recompute gas prices and the pending block after the clock or a value of the next header has changed."""
        self.chain.rewind(self.chain.tip)

    def set_coinbase(self, coinbase: Address) -> None:
        """Change the beneficiary of all later blocks."""
        self._assembler.settings.coinbase = coinbase
        self.announce()

    # --- time -----------------------------------------------------------------------------------

    def set_next_timestamp(self, timestamp: int, allow_equal: bool = True) -> None:
        """Set the timestamp of the next block."""
        self.clock.set_next(timestamp, allow_equal)
        self.announce()

    # --- impersonation --------------------------------------------------------------------------

    def impersonates(self, address: Address) -> bool:
        """Whether this account may send transactions without a signature."""
        return self.impersonates_all or address in self.impersonated

    def impersonate_signature(self, signature: bytes, address: Address) -> None:
        """Let ecrecover return this address for a signature (`r`, `s`, `v`) and any signed hash."""
        self.signatures[signature] = address
        self._use_rules()
        self.announce()

    def unsigned(self, transaction: UnsignedTransaction, sender: Address) -> Transaction:
        """Return a transaction of an impersonated account."""
        # lazy import: only transactions of impersonated accounts need this module
        from ophion.dev.block_json import impersonated_signature

        return Transaction.impersonated(transaction.with_signature(impersonated_signature(sender)), sender)

    # --- rewinding ------------------------------------------------------------------------------

    async def rollback(self, depth: int) -> None:
        """Remove the last `depth` blocks and their transactions from the chain."""
        async with self.sealer.head_lock:
            self.engine.branch += 1
            await self.head.rewind_to(self.chain.head.number - depth)
            self.clock.set_time(self.chain.head.timestamp)

    async def reorg(self, depth: int, blocks: Sequence[tuple[Transaction, ...]]) -> None:
        """Replace the last `depth` blocks by the same number of new blocks with these transactions."""
        async with self.sealer.head_lock:
            height = self.chain.head.number
            self.engine.branch += 1
            waiting = [item.transaction for item in self.pool.transactions()]
            await self.head.rewind_to(height - depth)
            self.clock.set_time(self.chain.head.timestamp)
            self.pool.readmit(())
            for number in range(depth):
                self.pool.readmit(blocks[number] if number < len(blocks) else ())
                await self.sealer.make_block_locked()
            self.pool.readmit(waiting)

    async def reset(self, fork: Fork | None = None) -> None:
        """Return to the first block and clear all settings. With `fork`, the first block is the forked block."""
        async with self.sealer.head_lock:
            if fork is not None:
                await self._use_fork(fork)
            self._snapshots.clear()
            self.engine.next = NextHeader()
            self.impersonated.clear()
            self.impersonates_all = False
            self.signatures.clear()
            self._use_rules()
            self.drop_all()
            genesis = self.chain.genesis
            self.clock.offset, self.clock.exact, self.clock.interval = 0.0, None, None
            if self.fork is not None:
                self.clock.set_time(genesis.timestamp)
            await self.head.rewind(genesis, self.base_root)

    async def _use_fork(self, fork: Fork) -> None:
        """Switch to a fork of another chain or of another block."""
        from ophion.dev.fork.start import start_fork

        chain, before = self.chain, self.fork

        def job(core: ImportCore) -> HeadChange | None:
            self.base_root = start_fork(chain, fork, self.balances)
            core.rewind(chain.tip)
            return None

        # without a write lane, no block is built on the event loop, where it could wait for the fork source
        self.sealer.write_lane = None
        await self.head.run(job)
        self.fork = fork
        if before is not None:
            before.close()
        if fork.point.chain_id != chain.spec.chain_id:
            self._use_chain_id(fork.point.chain_id)
        self.clock.set_time(chain.head.timestamp)

    # --- pool -----------------------------------------------------------------------------------

    def drop(self, hash: Hash32) -> bool:
        """Remove one transaction from the pool. Returns False if the pool does not have the transaction."""
        if self.pool.get(hash) is None:
            return False
        self.pool.drop((hash,), DropReason.STALE)
        return True

    def drop_all(self, sender: Address | None = None) -> None:
        """Remove all transactions from the pool, or only those of one sender."""
        items = self.pool.transactions()
        hashes = tuple(item.hash for item in items if sender is None or item.sender == sender)
        self.pool.drop(hashes, DropReason.STALE)

    async def idle(self) -> None:
        """Wait until the running change of the head (a block, a revert, an edit), if any, has finished."""
        async with self.sealer.head_lock:
            await asyncio.sleep(0)

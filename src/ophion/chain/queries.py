"""Resolves block references to header, state and environment, for JSON-RPC and GraphQL.

All values of the head are plain attributes, set once per head: `head`, `head_number`, `head_hash`, `head_state`,
`head_env`. A committed block stays hidden until it is announced, so clients never see blocks above `eth_blockNumber`.

An absent block gives `None`. A tag without meaning on this network raises `UnknownBlock`. A known block without its
state raises `MissingStateError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from ophion.chain.block_builder import BuiltBlock
from ophion.chain.block_environment import EnvOverrides, block_env
from ophion.chain.chain import Chain
from ophion.chain.events import ChainEvent
from ophion.consensus.clique_to_qbft import is_final_at
from ophion.consensus.engine import BlockPreferences
from ophion.consensus.header_rules import GAS_PER_BLOB, blob_base_fee
from ophion.errors import OphionError
from ophion.native.executor import BlockEnv, LatestBlock, State
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import ZERO_ADDRESS, Address, BlockRef, BlockTag, Hash32
from ophion.runtime.clock import Clock

SHORT_GAS: Final = 2_000_000
"""Maximum gas used of a block that is rendered within a few milliseconds, even if it is full of logs."""


class UnknownBlock(OphionError):
    """Raised for a tag that has no block on this network: `safe` and `finalized` need a network with finality."""

    def __init__(self, tag: BlockTag) -> None:
        self.tag = tag
        super().__init__("Unknown block")


class BlockView:
    """A block with its state and environment, both resolved at first use.

    The pending block has no hash; otherwise it behaves like any other block.
    """

    __slots__ = ("_chain", "_env", "_free_env", "_pending", "_state", "hash", "header")

    def __init__(self, chain: Chain, header: Header, hash: Hash32 | None, pending: BuiltBlock | None = None) -> None:
        self.header = header
        self.hash = hash
        self._chain = chain
        self._pending = pending
        self._state: State | None = None if pending is None else pending.state
        self._env: BlockEnv | None = None if pending is None else pending.env
        self._free_env: BlockEnv | None = None

    @property
    def state(self) -> State:
        """The state after the block. Raises `MissingStateError` when the state is pruned."""
        if self._state is None:
            self._state = self._chain.state(self.header)
        return self._state

    @property
    def env(self) -> BlockEnv:
        """Environment in which the block's transactions and calls at this block execute."""
        if self._env is None:
            self._env = self.env_with(EnvOverrides())
        return self._env

    @property
    def free_env(self) -> BlockEnv:
        """Environment for calls without a gas price. The base fee is 0, unless the chain has
        `has_base_fee_in_free_calls`.
        """
        if self._free_env is None:
            is_zeroed = self.header.base_fee_per_gas is not None and not self._chain.has_base_fee_in_free_calls
            self._free_env = self.env_with(EnvOverrides(base_fee=0)) if is_zeroed else self.env
        return self._free_env

    def env_with(self, overrides: EnvOverrides) -> BlockEnv:
        """Return the environment with some fields replaced."""
        chain = self._chain
        if self.hash is None:
            beneficiary = self.header.coinbase
        else:
            beneficiary = _beneficiary(chain, HashedHeader(self.header, self.hash))
        return block_env(chain.spec, chain.rules, self.header, beneficiary, overrides=overrides)

    @property
    def body(self) -> Body:
        """Transactions, ommers and withdrawals."""
        if self._pending is not None:
            return self._pending.body
        assert self.hash is not None
        body = self._chain.store.body(self.hash)
        assert body is not None, "a block is stored with its body"
        return body


class NextBlock(Struct, frozen=True):
    """Header and environment of an empty block after the head."""

    header: Header
    env: BlockEnv


class ChainQueries:
    """Chain queries of one node."""

    def __init__(self, chain: Chain, clock: Clock) -> None:
        self.chain = chain
        self.store = chain.store
        self.spec = chain.spec
        self.engine = chain.engine
        self.with_total_difficulty = chain.spec.terminal_total_difficulty is None
        """Whether block objects contain `totalDifficulty`."""
        self._pending: BlockView | None = None
        self._clock = clock
        self._build_pending: Callable[[], Awaitable[BuiltBlock]] | None = None
        self._building: asyncio.Task[BlockView] | None = None
        """Task that builds the pending block."""
        self._has_begun = False
        """Whether the running build of the pending block has already read the pool."""
        self._turn = asyncio.Lock()
        self._next: NextBlock | None = None
        self._next_made_at = self._pending_made_at = 0
        """Seconds in which the next and the pending block were made. A contract may depend on the time of a block, so
        both blocks are made again when the second of the clock has changed.
        """
        self._set_head(chain.head)
        self.newest = LatestBlock(self.head_number, self.head_state)
        """Number and state of the head, for RPC requests that the Rust extension answers without Python."""
        self.epoch_slots = 0
        """Number of blocks from the head to `safe`, and from `safe` to `finalized`, on a development chain."""
        self.on_head: Callable[[HashedHeader], None] | None = None
        """Called with each new head, before any other component of the node learns it."""
        chain.events.listen(self._on_chain_event)

    def _set_head(self, head: HashedHeader) -> None:
        self.head = head
        self.head_number = head.header.number
        self.head_hash = head.hash
        self.latest = BlockView(self.chain, head.header, head.hash)
        self.head_state = self.latest.state
        self.head_env = self.latest.env
        self._next = None
        self.forget_pending()

    def _on_chain_event(self, event: ChainEvent) -> None:
        self._set_head(event.head)
        self.newest.set(self.head_number, self.head_state)
        if self.on_head is not None:
            self.on_head(event.head)

    # --- references -----------------------------------------------------------------------------

    def header(self, ref: BlockRef) -> HashedHeader | None:
        """Return the header that a block reference names. For `pending`, return the head, because the pending block has
        no hash.
        """
        if isinstance(ref, BlockTag):
            if ref is BlockTag.EARLIEST:
                return self.chain.canonical(self.chain.genesis.number)
            if ref is BlockTag.SAFE or ref is BlockTag.FINALIZED:
                return self._final(ref)
            return self.head
        if isinstance(ref, int):
            if ref == self.head_number:
                return self.head
            return self.chain.canonical(ref) if self.chain.genesis.number <= ref < self.head_number else None
        if ref == self.head_hash:
            return self.head
        found = self.chain.header(ref)
        return None if found is None or self._is_ahead(found) else found

    def _final(self, tag: BlockTag) -> HashedHeader:
        """Return the `safe` or `finalized` block: the head, or a lower block with `epoch_slots`. Raises `UnknownBlock`
        in networks without finality.
        """
        if self.epoch_slots:
            distance = self.epoch_slots * (1 if tag is BlockTag.SAFE else 2)
            found = self.header(max(self.chain.genesis.number, self.head.number - distance))
            return self.head if found is None else found
        is_immediate = is_final_at(self.engine, self.head.number) or self.spec.is_dev
        if is_immediate or self.spec.terminal_total_difficulty is not None:
            return self.head
        raise UnknownBlock(tag)

    def _is_ahead(self, header: HashedHeader) -> bool:
        """Whether a block is committed as canonical but not announced yet."""
        return header.number > self.head_number and self.store.canonical_hash(header.number) == header.hash

    def is_canonical(self, header: HashedHeader) -> bool:
        """Whether a block is canonical and announced."""
        return header.number <= self.head_number and self.store.canonical_hash(header.number) == header.hash

    def view(self, ref: BlockRef) -> BlockView | None:
        """Return a block with state and environment. Use `find` or `pending` for the pending block."""
        if ref is BlockTag.LATEST:
            return self.latest
        header = self.header(ref)
        if header is None:
            return None
        return self.latest if header.hash == self.head_hash else BlockView(self.chain, header.header, header.hash)

    async def find(self, ref: BlockRef) -> BlockView | None:
        """Return a block with state and environment, including the pending block for `pending`."""
        return await self.pending() if ref is BlockTag.PENDING else self.view(ref)

    def total_difficulty(self, block: Hash32) -> int | None:
        """Return the total difficulty of a committed block, or None if the block is unknown."""
        return self.store.total_difficulty(block)

    # --- the block being built ------------------------------------------------------------------

    def serve_pending(self, build: Callable[[], Awaitable[BuiltBlock]]) -> None:
        """Set the function that builds the pending block."""
        self._build_pending = build

    def forget_pending(self) -> None:
        """Mark the pending block as stale after a change of head or pool."""
        self._pending = None
        if self._has_begun:
            self._building = None

    @property
    def pending_now(self) -> BlockView | None:
        """The pending block, or None if the head, the pool or the second of the clock has changed."""
        return self._pending if self._pending_made_at == int(self._clock.now()) else None

    async def pending(self) -> BlockView:
        """Return the pending block, which is built from the current pool. Concurrent callers share one build.

        While one build runs, at most one further build waits, however often the pool changes.
        """
        pending = self.pending_now
        if pending is not None:
            return pending
        if self._building is None:
            self._has_begun = False
            self._building = asyncio.create_task(self._make_pending(), name="pending block")
        return await asyncio.shield(self._building)

    async def _make_pending(self) -> BlockView:
        if self._build_pending is None:
            return self.latest
        task = asyncio.current_task()
        async with self._turn:
            self._has_begun = True
            try:
                second = int(self._clock.now())
                built = await self._build_pending()
                view = BlockView(self.chain, built.header, None, built)
                if self._building is task:
                    self._pending, self._pending_made_at = view, second
                return view
            finally:
                if self._building is task:
                    self._building = None

    # --- the next block -------------------------------------------------------------------------

    def next_block(self) -> NextBlock:
        """Return header and environment of an empty block after the head. Gas price suggestions and gas estimates use
        this environment.
        """
        second = int(self._clock.now())
        if self._next is None or self._next_made_at != second:
            self._next_made_at = second
            preferences = BlockPreferences(timestamp=second, author=ZERO_ADDRESS)
            header = self.engine.prepare(self.head, preferences, self.chain)
            beneficiary = self.head.header.coinbase
            self._next = NextBlock(header, block_env(self.spec, self.chain.rules, header, beneficiary))
        return self._next

    def next_base_fee(self) -> int | None:
        """Return the base fee of the next block, or None before London."""
        return self.next_block().header.base_fee_per_gas

    def next_blob_base_fee(self) -> int | None:
        """Return the blob base fee of the next block, or None before Cancun."""
        return self.blob_base_fee(self.next_block().header)

    def blob_base_fee(self, header: Header) -> int | None:
        """Return the blob base fee of a block, or None before Cancun."""
        blobs = self.spec.fork_of(header).blobs
        if blobs is None or header.excess_blob_gas is None:
            return None
        return blob_base_fee(header.excess_blob_gas, blobs.fee_fraction)

    def max_blob_gas(self, header: Header) -> int:
        """Return the maximum blob gas of a block, or 0 before Cancun."""
        blobs = self.spec.fork_of(header).blobs
        return 0 if blobs is None else blobs.max * GAS_PER_BLOB

    # --- objects of announced blocks, by hash ---------------------------------------------------

    def transaction_position(self, hash: Hash32) -> tuple[Hash32, int, int] | None:
        """Return (block hash, block number, index) of a mined transaction."""
        position = self.store.transaction_position(hash)
        return None if position is None or position[1] > self.head_number else position

    def receipt_json(self, hash: Hash32, with_revert_reason: bool, max_bytes: int | None = None) -> bytes | None:
        """Return the receipt object of a mined transaction. Raises if the stored receipt exceeds `max_bytes`."""
        if self.transaction_position(hash) is None:
            return None
        return self.store.receipt_json(hash, with_revert_reason, max_bytes)

    def transaction_json(self, hash: Hash32) -> bytes | None:
        """Return the transaction object of a mined transaction."""
        return None if self.transaction_position(hash) is None else self.store.transaction_json(hash)


def _beneficiary(chain: Chain, header: HashedHeader) -> Address:
    """Return the account that earned the fees. The genesis block has no seal, so its coinbase is returned."""
    return header.header.coinbase if header.number == 0 else chain.engine.beneficiary(header)

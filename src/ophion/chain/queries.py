"""From a block reference to header, state and environment: what JSON-RPC and GraphQL ask of the chain.

The head is asked for far more often than anything else, so everything about it is a plain attribute, set once when
the chain has a new head: `head`, `head_number`, `head_hash`, `head_state`, `head_env`. A block that the database
knows but the chain has not announced yet (the moment between commit and event) is not shown: what a client sees never
runs ahead of `eth_blockNumber`.

Three kinds of answer: `None` where the block is not there, `UnknownBlock` where the tag itself has no meaning here, and
`MissingStateError` where the block is known but its state is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from ophion.chain.block_environment import EnvOverrides, block_env
from ophion.chain.builder import BuiltBlock
from ophion.chain.chain import Chain
from ophion.chain.events import ChainEvent
from ophion.consensus.engine import BlockPreferences, Finality
from ophion.consensus.header_rules import GAS_PER_BLOB, blob_base_fee
from ophion.errors import OphionError
from ophion.native.executor import BlockEnv, LatestBlock, State
from ophion.native.transactions import Body
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import ZERO_ADDRESS, Address, BlockRef, BlockTag, Hash32
from ophion.runtime.clock import Clock

SHORT_GAS: Final = 2_000_000
"""What so much gas can pay for is put into words in a few milliseconds at worst (a block of nothing but logs)."""


class UnknownBlock(OphionError):
    """A tag that names no block on this network: `safe` and `finalized` where nothing is final."""

    def __init__(self, tag: BlockTag) -> None:
        self.tag = tag
        super().__init__("Unknown block")


class BlockView:
    """A block with its state and environment, each found when first asked for.

    The pending block has no hash; everything else about it is as with any other block.
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
        """The world after the block; `MissingStateError` when it is not kept."""
        if self._state is None:
            self._state = self._chain.state(self.header)
        return self._state

    @property
    def env(self) -> BlockEnv:
        """What transactions of the block saw of it; calls at this block see the same."""
        if self._env is None:
            self._env = self.env_with(EnvOverrides())
        return self._env

    @property
    def free_env(self) -> BlockEnv:
        """The environment of calls that pay nothing: with a base fee of 0, so that no contract asks why."""
        if self._free_env is None:
            has_base_fee = self.header.base_fee_per_gas is not None
            self._free_env = self.env_with(EnvOverrides(base_fee=0)) if has_base_fee else self.env
        return self._free_env

    def env_with(self, overrides: EnvOverrides) -> BlockEnv:
        """The environment with some of its fields replaced."""
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
    """What is known of the block after the head before anything is put into it."""

    header: Header
    env: BlockEnv


class Queries:
    """Reads of the chain for one node."""

    def __init__(self, chain: Chain, clock: Clock) -> None:
        self.chain = chain
        self.store = chain.store
        self.spec = chain.spec
        self.engine = chain.engine
        self.with_total_difficulty = chain.spec.terminal_total_difficulty is None
        """Whether block objects carry `totalDifficulty`."""
        self.pending_now: BlockView | None = None
        """The pending block when it has been built since head or pool last changed."""
        self._clock = clock
        self._build_pending: Callable[[], Awaitable[BuiltBlock]] | None = None
        self._building: asyncio.Task[BlockView] | None = None
        """Makes a pending block that is good for whoever asks now."""
        self._has_begun = False
        """Whether it has looked at the pool already."""
        self._turn = asyncio.Lock()
        self._next: NextBlock | None = None
        self._set_head(chain.head)
        self.newest = LatestBlock(self.head_number, self.head_state)
        """The head again, for questions that the extension answers by itself."""
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

    # --- references -----------------------------------------------------------------------------

    def header(self, ref: BlockRef) -> HashedHeader | None:
        """The header a reference names; the head for `pending`, since that block has no hash."""
        if isinstance(ref, BlockTag):
            if ref is BlockTag.EARLIEST:
                return self.chain.canonical(0)
            if ref is BlockTag.SAFE or ref is BlockTag.FINALIZED:
                return self._final(ref)
            return self.head
        if isinstance(ref, int):
            if ref == self.head_number:
                return self.head
            return self.chain.canonical(ref) if 0 <= ref < self.head_number else None
        if ref == self.head_hash:
            return self.head
        found = self.chain.header(ref)
        return None if found is None or self._is_ahead(found) else found

    def _final(self, tag: BlockTag) -> HashedHeader:
        """Under BFT a committed block stays; after the merge, and on the development network, so does the head."""
        is_still = self.engine.finality is Finality.IMMEDIATE or self.spec.is_dev
        if is_still or self.spec.terminal_total_difficulty is not None:
            return self.head
        raise UnknownBlock(tag)

    def _is_ahead(self, header: HashedHeader) -> bool:
        """Whether a block is on disk as canonical and not announced yet."""
        return header.number > self.head_number and self.store.canonical_hash(header.number) == header.hash

    def is_canonical(self, header: HashedHeader) -> bool:
        """Whether a block lies on the canonical chain."""
        return header.number <= self.head_number and self.store.canonical_hash(header.number) == header.hash

    def view(self, ref: BlockRef) -> BlockView | None:
        """A block with state and environment; `pending` is asked for with `find` or `pending`."""
        if ref is BlockTag.LATEST:
            return self.latest
        header = self.header(ref)
        if header is None:
            return None
        return self.latest if header.hash == self.head_hash else BlockView(self.chain, header.header, header.hash)

    async def find(self, ref: BlockRef) -> BlockView | None:
        """As `view`, with the real pending block for `pending`."""
        return await self.pending() if ref is BlockTag.PENDING else self.view(ref)

    def total_difficulty(self, block: Hash32) -> int | None:
        """Sum of the difficulties up to and including this block."""
        return self.store.total_difficulty(block)

    # --- the block being built ------------------------------------------------------------------

    def serve_pending(self, build: Callable[[], Awaitable[BuiltBlock]]) -> None:
        """Say who builds the pending block."""
        self._build_pending = build

    def forget_pending(self) -> None:
        """Head or pool have changed: the pending block must be built again when somebody asks."""
        self.pending_now = None
        if self._has_begun:
            self._building = None

    async def pending(self) -> BlockView:
        """The block that would be made now, built from the pool when first asked for; callers share one build.

        One is built at a time, and one more waits, however often the pool changes and clients ask in between.
        """
        if self.pending_now is not None:
            return self.pending_now
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
                built = await self._build_pending()
                view = BlockView(self.chain, built.header, None, built)
                if self._building is task:
                    self.pending_now = view
                return view
            finally:
                if self._building is task:
                    self._building = None

    # --- the next block -------------------------------------------------------------------------

    def next_block(self) -> NextBlock:
        """Header and environment of the next block, empty: prices of that block, and where estimates run."""
        if self._next is None:
            wishes = BlockPreferences(timestamp=int(self._clock.now()), author=ZERO_ADDRESS)
            header = self.engine.prepare(self.head, wishes, self.chain)
            beneficiary = self.head.header.coinbase
            self._next = NextBlock(header, block_env(self.spec, self.chain.rules, header, beneficiary))
        return self._next

    def next_base_fee(self) -> int | None:
        """Base fee of the next block; None before London."""
        return self.next_block().header.base_fee_per_gas

    def next_blob_base_fee(self) -> int | None:
        """Price of blob gas in the next block; None before Cancun."""
        return self.blob_base_fee(self.next_block().header)

    def blob_base_fee(self, header: Header) -> int | None:
        """Price of blob gas in a block; None before Cancun."""
        blobs = self.spec.fork_of(header).blobs
        if blobs is None or header.excess_blob_gas is None:
            return None
        return blob_base_fee(header.excess_blob_gas, blobs.fee_fraction)

    def max_blob_gas(self, header: Header) -> int:
        """Most blob gas a block may use; 0 before Cancun."""
        blobs = self.spec.fork_of(header).blobs
        return 0 if blobs is None else blobs.max * GAS_PER_BLOB

    # --- objects by hash, not before their block is announced -----------------------------------

    def transaction_position(self, hash: Hash32) -> tuple[Hash32, int, int] | None:
        """(block hash, block number, index) of a mined transaction."""
        position = self.store.transaction_position(hash)
        return None if position is None or position[1] > self.head_number else position

    def receipt_json(self, hash: Hash32, with_revert_reason: bool, max_bytes: int | None = None) -> bytes | None:
        """The receipt object of a mined transaction; an error where it takes more than `max_bytes` in the database."""
        if self.transaction_position(hash) is None:
            return None
        return self.store.receipt_json(hash, with_revert_reason, max_bytes)

    def transaction_json(self, hash: Hash32) -> bytes | None:
        """The transaction object of a mined transaction."""
        return None if self.transaction_position(hash) is None else self.store.transaction_json(hash)


def _beneficiary(chain: Chain, header: HashedHeader) -> Address:
    """Who earned the fees; nobody did in the genesis block, which no engine has sealed."""
    return header.header.coinbase if header.number == 0 else chain.engine.beneficiary(header)

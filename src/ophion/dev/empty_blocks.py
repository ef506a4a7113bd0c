"""`EmptyBlocks`: adds many empty blocks to a development chain, much faster than by building each block.

The first blocks are executed one by one. Once prices and limits are constant, Rust executes and chains the other blocks
(native/execution/src/block/empty_blocks.rs). tests/unit/dev/test_empty_blocks.py compares the result with single
blocks.
"""

from __future__ import annotations

from msgspec.structs import replace

from ophion.chain.block_builder import BlockBuilder, BuiltBlock, completed
from ophion.chain.block_environment import block_env
from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chain.fork_choice import HeadChange
from ophion.consensus.engine import BlockPreferences, HeaderReader, Tip
from ophion.dev.engine import DevEngine
from ophion.native.crypto import keccak256
from ophion.native.exceptions import translated
from ophion.native.executor import append_empty
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Hash32

_MAX_COMMIT_BLOCKS = 64
_MAX_RUN_BLOCKS = 2048
_HASH_BYTES = 32


class EmptyBlocks:
    """A request for `left` empty blocks on the head, `interval` seconds apart. Each call of `add` adds some of these
    blocks.
    """

    def __init__(
        self,
        chain: Chain,
        builder: BlockBuilder,
        engine: DevEngine,
        preferences: BlockPreferences,
        interval: int,
        count: int,
    ) -> None:
        self.left = count
        self.bodies: dict[Hash32, Body] = {}
        """Bodies of the blocks that the last call of `add` has added."""
        self._chain = chain
        self._builder = builder
        self._engine = engine
        self._drafts = EmptyDrafts(engine, preferences, interval)
        self._last: BuiltBlock | None = None
        """The last block that `_execute` has executed."""

    def add(self, core: ImportCore) -> HeadChange | None:
        """Add some of the remaining blocks to the head. Must run in the write lane (worker thread)."""
        self.bodies.clear()
        first, count = self._drafts.repeated(self._chain.head), min(self.left, _MAX_RUN_BLOCKS)
        if first is None:
            return self._execute(min(self.left, _MAX_COMMIT_BLOCKS), core)
        while not self._engine.is_one_fork(first, count, self._drafts.step):
            count //= 2
        # `_add_run` adds nothing while the requests of system contracts (EIP-7685) differ from block to block: then
        # execute one block
        return self._add_run(first, count, core) or self._execute(1, core)

    def _execute(self, count: int, core: ImportCore) -> HeadChange | None:
        """Execute up to `count` empty blocks. Stops early when the next block can be a copy of the last one."""
        chain = self._chain
        parent = chain.head
        try:
            state = core.state_after(parent)
            for _ in range(count):
                built = self._last = self._builder.empty(self._drafts.after(parent, core), state)
                state = built.state
                encoded = built.header.encode()
                parent = HashedHeader(built.header, keccak256(encoded))
                core.stage_built(parent, built.body, built.execution, encoded)
                self.bodies[parent.hash] = built.body
                self.left -= 1
                if self._drafts.repeated(parent) is not None:
                    break
            return core.commit()
        finally:
            core.discard()

    def _add_run(self, first: Header, count: int, core: ImportCore) -> HeadChange | None:
        """Add up to `count` copies of the last executed block in Rust, from the header `first` on. Returns None if the
        first copy would have other EIP-7685 requests than that block.
        """
        chain, engine, last, step = self._chain, self._engine, self._last, self._drafts.step
        assert last is not None, "a block was executed before its draft is repeated"
        header, parent = completed(first, last.body, last.execution), chain.tip
        branch = engine.randomness_branch(first)
        with translated():
            rows = append_empty(
                chain.store,
                chain.store.state(chain.root_after(parent.header.header)),
                block_env(chain.spec, chain.rules, first, first.coinbase),
                last.body,
                engine.rewards(HashedHeader(first, first.parent_hash), ()),
                header.encode(),
                count,
                step,
                branch,
                parent.total_difficulty,
            )
        if not rows:
            return None
        added: list[HashedHeader] = []
        for start in range(0, len(rows), 2 * _HASH_BYTES):
            hash, root = rows[start : start + _HASH_BYTES], rows[start + _HASH_BYTES : start + 2 * _HASH_BYTES]
            if not added:
                header = replace(header, state_root=root)
            else:
                header = replace(
                    header,
                    parent_hash=added[-1].hash,
                    state_root=root,
                    number=header.number + 1,
                    timestamp=header.timestamp + step,
                    mix_hash=header.mix_hash if branch is None else engine.randomness(added[-1].hash),
                )
            added.append(HashedHeader(header, hash))
            self.bodies[hash] = last.body
        self._drafts.last = header
        self.left -= len(added)
        tip = Tip(added[-1], parent.total_difficulty + len(added) * header.difficulty)
        core.move_to(tip)
        return HeadChange((), tuple(added), tip)


class EmptyDrafts:
    """Drafts of successive empty blocks. Once prices and limits are constant, each draft is a copy of the last one."""

    def __init__(self, engine: DevEngine, preferences: BlockPreferences, interval: int) -> None:
        self._engine = engine
        self._preferences = preferences
        self._interval = interval
        self.step = engine.step(interval)
        """Seconds between two drafts."""
        self.last: Header | None = None
        self.is_steady = False
        """Whether the last two drafts have the same prices and limits."""

    def repeated(self, parent: HashedHeader) -> Header | None:
        """Return a copy of the last draft for the block after `parent`; None if prices or limits may differ."""
        if self.last is None or not self.is_steady:
            return None
        return self._engine.repeated(self.last, parent, self._timestamp(parent))

    def after(self, parent: HashedHeader, reader: HeaderReader) -> Header:
        """Return the draft of the block after `parent`."""
        timestamp = max(self._timestamp(parent), parent.timestamp)
        last, draft = self.last, self._engine.prepare(parent, replace(self._preferences, timestamp=timestamp), reader)
        self.is_steady = (
            last is not None
            and draft.base_fee_per_gas == last.base_fee_per_gas
            and draft.gas_limit == last.gas_limit
            and draft.excess_blob_gas == last.excess_blob_gas
            and draft.difficulty == last.difficulty
        )
        self.last = draft
        return draft

    def _timestamp(self, parent: HashedHeader) -> int:
        return parent.timestamp + self._interval if self._interval else self._preferences.timestamp

"""Verifies, executes and commits blocks: the only way into the chain. Synchronous; one thread at a time.

The work has two steps, so that many blocks can share one write transaction and a proposal can be checked before its
commit:

    stage    all rules, including execution; writes nothing. Later blocks can build on staged ones.
    commit   fork choice over all staged blocks, one `store.commit`, and the resulting change of the head.

A continuous import runs both steps at the same time: `detach` moves staged blocks into an `ImportBatch`, another thread
writes the batch (`write`), and further blocks are staged on top. Only one batch is written at a time.

`stage` raises `InvalidBlock` for a block that breaks a rule, and remembers the block. `UnknownParent` and transient
errors mean that the validity of the block is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from ophion.chain import validation
from ophion.chain.ancestor_hashes import MAX_BYTES, ancestor_hashes
from ophion.chain.bad_blocks import BadBlocks
from ophion.chain.block import ommers_of
from ophion.chain.block_environment import block_env
from ophion.chain.chain import Chain, checkpoint_key
from ophion.chain.fork_choice import HeadChange, head_change
from ophion.consensus.engine import HeaderReader, Tip
from ophion.consensus.header_snapshots import CHECKPOINT_DISTANCE
from ophion.errors import DecodeError, InvalidBlock, StateDropped, UnknownParent
from ophion.native.crypto import keccak256
from ophion.native.exceptions import InvalidBody, MissingState, NativeError, TimedOut, as_ophion_error, translated
from ophion.native.executor import Execution, State, execute
from ophion.native.store import NewBlock
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Hash32
from ophion.runtime.clock import Clock

HeaderCheck: TypeAlias = Callable[[HashedHeader, HashedHeader, HeaderReader, int], None]
"""Signature of `Engine.verify`: header, parent, chain, now."""

SenderCheck: TypeAlias = Callable[[HashedHeader, State, Body], None]
"""Raises `InvalidBlock` if the account rules in the parent's state forbid a transaction of the block."""


class StagedBlock(Struct, frozen=True):
    """A valid block that is not committed yet."""

    header: HashedHeader
    body: Body
    execution: Execution
    total_difficulty: int
    ommers: tuple[Header, ...]
    encoded: bytes | None = None
    """The header as RLP; None if the header was not encoded before."""

    @property
    def tip(self) -> Tip:
        """The block and its total difficulty, as a candidate for the head."""
        return Tip(self.header, self.total_difficulty)


class ImportBatch(Struct, frozen=True):
    """Staged blocks that are being written."""

    blocks: tuple[NewBlock, ...]
    checkpoints: tuple[tuple[str, bytes], ...]
    change: HeadChange | None
    """Change of the chain head by this batch. None if the head stays the same."""
    before: Tip
    """The stored head before the batch is written."""


class ImportCore:
    """Verifies and executes blocks, and commits them."""

    def __init__(
        self, chain: Chain, clock: Clock, keeps_revert_data: bool = False, check_senders: SenderCheck | None = None
    ) -> None:
        """Create the core. `check_senders` is called for every non-empty block of another node, before its
        execution.
        """
        self.chain = chain
        self._check_senders = check_senders
        self.bad_blocks = BadBlocks()
        self._clock = clock
        self._keeps_revert_data = keeps_revert_data
        # `_tip` is the head of the chain after the commit of the batch being written; `chain.head` changes only when
        # the batch is published
        self._tip = chain.tip
        # `_best` is the head that the chain gets when all staged blocks are committed
        self._best = chain.tip
        self._staged: dict[Hash32, StagedBlock] = {}
        # `_writing` holds executed blocks that the writer thread stores now; the database may lack some of them
        self._writing: dict[Hash32, StagedBlock] = {}
        # `_window` holds the ancestor hashes of the block after `_window_end`, newest hash first, for `BlockEnv`
        self._window = b""
        self._window_end: Hash32 = b""
        self._has_rewound = False

    # --- HeaderReader: committed blocks and staged ones ---

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        """Return the header of a staged or committed block, or None."""
        staged = self._pending(block_hash)
        if staged is not None:
            return staged.header
        # answer without a database read for the chain head, because every import needs its header
        return self._tip.header if block_hash == self._tip.header.hash else self.chain.header(block_hash)

    def _pending(self, block_hash: Hash32) -> StagedBlock | None:
        """Return a block that is staged or being written. Callers search here first and then in the database, because a
        commit moves blocks from here to the database.
        """
        return self._staged.get(block_hash) or self._writing.get(block_hash)

    def canonical(self, number: int) -> HashedHeader | None:
        """Return the committed canonical header with this number, or None."""
        return self.chain.canonical(number)

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Return the total difficulty of a staged or committed block, or None if the block is unknown."""
        staged = self._pending(block_hash)
        return staged.total_difficulty if staged is not None else self.chain.total_difficulty(block_hash)

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """Return the ommers of a staged or committed block; empty if the block is unknown."""
        staged = self._pending(block_hash)
        return staged.ommers if staged is not None else self.chain.ommers(block_hash)

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """Return the checkpoint that the engine has stored for a block, or None."""
        return self.chain.checkpoint(block_hash)

    # --- stage and commit ---

    def is_known(self, block_hash: Hash32) -> bool:
        """Whether the block is committed or staged. After a development chain was rewound, a block above its head
        counts as unknown.
        """
        found = self.header(block_hash)
        return found is not None and not (self._has_rewound and found.number > self._best.header.number)

    def stage(self, header: HashedHeader, body: Body, execution: Execution | None = None) -> StagedBlock:
        """Verify and execute a block and hold it for `commit`. If the builder's `execution` is given, the block is not
        executed.
        """
        staged = self.check(header, body, execution)
        self._staged[header.hash] = staged
        if self.chain.engine.prefers(staged.tip, self._best, self):
            self._best = staged.tip
        return staged

    def stage_built(self, header: HashedHeader, body: Body, execution: Execution, encoded: bytes | None = None) -> None:
        """Stage a block that a development node has just built on the best block, without checking any rule."""
        total_difficulty = self._best.total_difficulty + header.header.difficulty
        staged = self._staged[header.hash] = StagedBlock(header, body, execution, total_difficulty, (), encoded)
        self._best = staged.tip

    def check(
        self,
        header: HashedHeader,
        body: Body,
        execution: Execution | None = None,
        verify: HeaderCheck | None = None,
        limit_s: float | None = None,
    ) -> StagedBlock:
        """Verify and execute a block, as in `stage`, but do not hold it for `commit`.

        `verify` replaces the engine's check, for a proposal without seals. `limit_s` limits the execution time.
        """
        bad = self.bad_blocks.get(header.hash)
        if bad is not None:
            raise bad.error
        parent = self.header(header.parent_hash)
        if parent is None:
            self._refuse_orphan(header)
            raise UnknownParent(header.number, header.parent_hash, self._best.header.number)
        try:
            (verify or self.chain.engine.verify)(header, parent, self, int(self._clock.now()))
        except InvalidBlock as error:
            located = error.at(header.number, header.hash)
            # remember a bad block only if its hash covers the whole header. A BFT block hash does not cover the seals,
            # so a block with the same hash and valid seals may exist.
            if not error.transient and keccak256(header.header.encode()) == header.hash:
                self.bad_blocks.add(header, body, located)
            raise located from error
        try:
            validation.check_belongs(header.header, body)
        except InvalidBlock as error:
            # only the body is wrong: do not add the block to `bad_blocks`, because the right body may still arrive
            raise error.at(header.number, header.hash) from error
        try:
            return self._checked(header, parent, body, execution, limit_s)
        except InvalidBlock as error:
            located = error.at(header.number, header.hash)
            if not error.transient:
                self.bad_blocks.add(header, body, located)
            raise located from error

    def _refuse_orphan(self, header: HashedHeader) -> None:
        if self.bad_blocks.get(header.parent_hash) is not None:
            raise InvalidBlock("parent is a bad block", header.parent_hash, number=header.number, hash=header.hash)

    def _checked(
        self,
        header: HashedHeader,
        parent: HashedHeader,
        body: Body,
        execution: Execution | None,
        limit_s: float | None,
    ) -> StagedBlock:
        engine = self.chain.engine
        validation.check_body(header.header, body, self.chain.spec.fork_of(header.header))
        try:
            ommers = ommers_of(body)
        except DecodeError as error:
            raise InvalidBlock("ommers", str(error)) from error
        engine.verify_ommers(header, ommers, self)
        if execution is None:
            execution = self._execute(header, parent, body, ommers, limit_s)
        validation.check_results(header.header, execution)
        parent_difficulty = self.total_difficulty(parent.hash)
        if parent_difficulty is None:
            raise UnknownParent(header.number, header.parent_hash, self._best.header.number)
        return StagedBlock(header, body, execution, parent_difficulty + header.header.difficulty, ommers)

    def _execute(
        self,
        header: HashedHeader,
        parent: HashedHeader,
        body: Body,
        ommers: tuple[Header, ...],
        limit_s: float | None,
    ) -> Execution:
        chain = self.chain
        try:
            state = self.state_after(parent)
        except MissingState:
            raise StateDropped(header.number, header.parent_hash, self._best.header.number) from None
        if self._check_senders is not None:
            self._check_senders(parent, state, body)
        env = block_env(
            chain.spec, chain.rules, header.header, chain.engine.beneficiary(header), self._ancestor_hashes(parent)
        )
        try:
            rewards = chain.engine.rewards(header, ommers)
            return execute(state, env, body, rewards, self._keeps_revert_data, limit_s)
        except InvalidBody as error:
            raise InvalidBlock(str(error)) from error
        except TimedOut as error:
            # the timeout is transient, because a faster machine may execute the block in time
            raise InvalidBlock(str(error), transient=True) from error
        except NativeError as error:
            raise as_ophion_error(error) from error

    def state_after(self, parent: HashedHeader) -> State:
        """Return the state after a committed or staged block."""
        staged = self._pending(parent.hash)
        if staged is not None:
            return staged.execution.state
        return self.chain.store.state(self.chain.root_after(parent.header))

    def _ancestor_hashes(self, parent: HashedHeader) -> bytes | None:
        """Return the ancestor hashes for a block on `parent`, or None when all ancestors are canonical."""
        if not self._staged and not self._writing and parent.hash == self._tip.header.hash:
            return None
        if self._window_end != parent.parent_hash or not self._window:
            self._window = ancestor_hashes(self.chain.store, self.header, parent)
        else:
            self._window = (parent.hash + self._window)[:MAX_BYTES]
        self._window_end = parent.hash
        return self._window

    def commit(self) -> HeadChange | None:
        """Write all staged blocks in one transaction. Returns the change of the head, or None if the head stays.

        The caller then passes the change to `Chain.advance`, in the thread of the chain's listeners.
        """
        batch = self.detach()
        if batch is None:
            return None
        self.write(batch)
        return batch.change

    def detach(self) -> ImportBatch | None:
        """Move all staged blocks into a batch. Returns None if no block is staged. The previous batch must already be
        written.
        """
        assert not self._writing, "one batch at a time"
        if not self._staged:
            return None
        change = None
        if self._best.header.hash != self._tip.header.hash:
            change = head_change(self._best, self._tip.header, self)
        blocks = tuple(_new_block(staged) for staged in self._staged.values())
        batch = ImportBatch(blocks, tuple(self._checkpoints()), change, self._tip)
        self._tip = self._best
        self._writing, self._staged = self._staged, {}
        return batch

    def write(self, batch: ImportBatch) -> None:
        """Commit a batch, in any thread. On failure, drops the batch and all blocks staged after it."""
        change = batch.change
        try:
            with translated():
                self.chain.store.commit(
                    batch.blocks,
                    [header.hash for header in change.removed] if change is not None else [],
                    [header.hash for header in change.added] if change is not None else [],
                    batch.checkpoints,
                )
        except BaseException:
            self._tip = batch.before
            self._writing = {}
            self.discard()
            raise
        self._writing = {}

    def _checkpoints(self) -> Iterator[tuple[str, bytes]]:
        """Yield the engine's checkpoints of the staged blocks, as named values of the database."""
        for header in (staged.header for staged in self._staged.values()):
            if header.number % CHECKPOINT_DISTANCE == 0:
                record = self.chain.engine.checkpoint(header, self)
                if record is not None:
                    yield checkpoint_key(header.hash), record

    def rewind(self, tip: Tip) -> None:
        """Make another committed block the head, on which the next block is staged. Development nodes call this after
        `Store.rewind`.
        """
        self._has_rewound = True
        self.move_to(tip)

    def move_to(self, tip: Tip) -> None:
        """Set an already committed block as the head, on which further blocks are staged. Development nodes call this
        after `append_empty`.
        """
        self._tip = tip
        self.discard()

    def discard(self) -> None:
        """Drop all staged blocks."""
        self._staged.clear()
        self._best = self._tip
        self._window_end = b""


def _new_block(staged: StagedBlock) -> NewBlock:
    return NewBlock(
        hash=staged.header.hash,
        number=staged.header.number,
        header=staged.encoded or staged.header.header.encode(),
        body=staged.body,
        execution=staged.execution,
        total_difficulty=staged.total_difficulty,
    )

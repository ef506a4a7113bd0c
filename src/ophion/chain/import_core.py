"""The only way into the chain: verify, execute, compare, choose, commit. Synchronous; one thread at a time.

Work is done in two steps so that many blocks can share one write transaction and a proposal can be checked long before
it is committed:

    stage    all rules, execution included; nothing is written. Staged blocks can be built upon at once.
    commit   fork choice over everything staged, one `store.commit`, and the change of the head that came of it.

Whoever imports without end does both at once: `detach` takes what is staged out as a `Batch`, another thread writes it
(`write`), and meanwhile blocks are staged upon it. One batch at a time is being written.

`stage` raises `InvalidBlock` for a block that breaks a rule and remembers it; `UnknownParent` and errors marked
transient say that it is too early to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from ophion.chain import validation
from ophion.chain.bad_blocks import BadBlocks
from ophion.chain.block import ommers_of
from ophion.chain.block_environment import block_env
from ophion.chain.chain import Chain, checkpoint_key
from ophion.chain.fork_choice import HeadChange, head_change
from ophion.consensus.engine import HeaderReader, Tip
from ophion.consensus.header_fold import CHECKPOINT_DISTANCE
from ophion.errors import DecodeError, InvalidBlock, StateDropped, UnknownParent
from ophion.native.crypto import keccak256
from ophion.native.exceptions import InvalidBody, MissingState, NativeError, TimedOut, as_ophion_error, translated
from ophion.native.executor import Execution, State, execute
from ophion.native.store import NewBlock
from ophion.native.transactions import Body
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import HASH_LENGTH, Hash32
from ophion.runtime.clock import Clock

HeaderCheck: TypeAlias = Callable[[HashedHeader, HashedHeader, HeaderReader, int], None]
"""As `Engine.verify`: header, parent, chain, now."""

SenderCheck: TypeAlias = Callable[[HashedHeader, State, Body], None]
"""Raises `InvalidBlock` when a block on this parent, with this state, holds a transaction that may not be sent."""

_REACH: Final = 256
"""How many ancestors the BLOCKHASH instruction can name."""


class Staged(Struct, frozen=True):
    """A valid block that is not committed yet."""

    header: HashedHeader
    body: Body
    execution: Execution
    total_difficulty: int
    ommers: tuple[Header, ...]

    @property
    def tip(self) -> Tip:
        """The block as the end of a branch."""
        return Tip(self.header, self.total_difficulty)


class Batch(Struct, frozen=True):
    """Staged blocks on their way to disk."""

    blocks: tuple[NewBlock, ...]
    checkpoints: tuple[tuple[str, bytes], ...]
    change: HeadChange | None
    """How the head moves with them; None when it stays."""
    before: Tip
    """The head that is on disk."""


class ImportCore:
    """Verifies and executes blocks, and commits them."""

    def __init__(
        self, chain: Chain, clock: Clock, keeps_revert_data: bool = False, check_senders: SenderCheck | None = None
    ) -> None:
        """`check_senders` is asked about every block of others that is not empty, before it is executed."""
        self.chain = chain
        self._check_senders = check_senders
        self.bad_blocks = BadBlocks()
        self._clock = clock
        self._keeps_revert_data = keeps_revert_data
        # the head once what is being written is on disk; `chain.head` follows it when the change is published
        self._tip = chain.tip
        # where the head goes once everything staged is committed
        self._best = chain.tip
        self._staged: dict[Hash32, Staged] = {}
        # detached and perhaps not written yet
        self._writing: dict[Hash32, Staged] = {}
        # hashes of the ancestors of the block after `_window_end`, newest first, as BlockEnv takes them
        self._window = b""
        self._window_end: Hash32 = b""
        self._has_rewound = False

    # --- HeaderReader: committed blocks and staged ones ---

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        """A header on any branch."""
        staged = self._pending(block_hash)
        return staged.header if staged is not None else self.chain.header(block_hash)

    def _pending(self, block_hash: Hash32) -> Staged | None:
        """A block that is not committed, as far as is known; asked before the database, which has it afterwards."""
        return self._staged.get(block_hash) or self._writing.get(block_hash)

    def canonical(self, number: int) -> HashedHeader | None:
        """A header of the canonical chain as it is committed."""
        return self.chain.canonical(number)

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Sum of the difficulties up to and including a block."""
        staged = self._pending(block_hash)
        return staged.total_difficulty if staged is not None else self.chain.total_difficulty(block_hash)

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """The ommers of a block."""
        staged = self._pending(block_hash)
        return staged.ommers if staged is not None else self.chain.ommers(block_hash)

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """What the engine wanted to know again about a block."""
        return self.chain.checkpoint(block_hash)

    # --- the two steps ---

    def is_known(self, block_hash: Hash32) -> bool:
        """Whether the block is committed or staged; one that a development node has taken off counts as new."""
        found = self.header(block_hash)
        return found is not None and not (self._has_rewound and found.number > self._best.header.number)

    def stage(self, header: HashedHeader, body: Body, execution: Execution | None = None) -> Staged:
        """Verify and execute a block and keep it for `commit`. An `execution` left by the builder is not repeated."""
        staged = self.check(header, body, execution)
        self._staged[header.hash] = staged
        if self.chain.engine.prefers(staged.tip, self._best, self):
            self._best = staged.tip
        return staged

    def adopt(self, header: HashedHeader, body: Body, execution: Execution) -> None:
        """Keep an empty block of a development node, made just now on the best one, for `commit`. Checks no rule."""
        total_difficulty = self._best.total_difficulty + header.header.difficulty
        staged = self._staged[header.hash] = Staged(header, body, execution, total_difficulty, ())
        self._best = staged.tip

    def check(
        self,
        header: HashedHeader,
        body: Body,
        execution: Execution | None = None,
        verify: HeaderCheck | None = None,
        limit_s: float | None = None,
    ) -> Staged:
        """Everything `stage` does, except that the block is not kept.

        `verify` takes the place of the engine's own check, for a proposal that is not sealed yet; `limit_s` is how long
        its transactions may take.
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
            # a BFT hash leaves out the seals: bad seals say nothing against the block that has this hash
            if not error.transient and keccak256(header.header.encode()) == header.hash:
                self.bad_blocks.add(header, body, located)
            raise located from error
        try:
            validation.check_belongs(header.header, body)
        except InvalidBlock as error:
            # not remembered: the right body for this header may still come
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
    ) -> Staged:
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
        return Staged(header, body, execution, parent_difficulty + header.header.difficulty, ommers)

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
            raise InvalidBlock(str(error), transient=True) from error  # by this machine and this limit
        except NativeError as error:
            raise as_ophion_error(error) from error

    def state_after(self, parent: HashedHeader) -> State:
        """The world after a block that is committed or staged."""
        staged = self._pending(parent.hash)
        if staged is not None:
            return staged.execution.state
        return self.chain.store.state(self.chain.root_after(parent.header))

    def _ancestor_hashes(self, parent: HashedHeader) -> bytes | None:
        """Hashes of the ancestors of a block on `parent`; None when they are all on the canonical chain."""
        if not self._staged and not self._writing and parent.hash == self._tip.header.hash:
            return None
        if self._window_end != parent.parent_hash or not self._window:
            self._window = self._walk_back(parent)
        else:
            self._window = parent.hash + self._window[: (_REACH - 1) * HASH_LENGTH]
        self._window_end = parent.hash
        return self._window

    def _walk_back(self, parent: HashedHeader) -> bytes:
        hashes = [parent.hash]
        cursor = parent
        while len(hashes) < _REACH and cursor.number > 0:
            if self._pending(cursor.hash) is None and self.chain.is_canonical(cursor):
                first = max(cursor.number - (_REACH - len(hashes)), 0)
                found = (self.chain.store.canonical_hash(number) for number in range(cursor.number - 1, first - 1, -1))
                hashes.extend(block_hash for block_hash in found if block_hash is not None)
                break
            hashes.append(cursor.parent_hash)
            above = self.header(cursor.parent_hash)
            if above is None:
                break
            cursor = above
        return b"".join(hashes)

    def commit(self) -> HeadChange | None:
        """Write everything staged in one transaction; the change of the head, or None when it stays.

        Whoever calls this hands the change to `Chain.advance`, in the thread the chain's listeners live in.
        """
        batch = self.detach()
        if batch is None:
            return None
        self.write(batch)
        return batch.change

    def detach(self) -> Batch | None:
        """Everything staged, to be written; None when there is nothing. The batch before must have been written."""
        assert not self._writing, "one batch at a time"
        if not self._staged:
            return None
        change = None
        if self._best.header.hash != self._tip.header.hash:
            change = head_change(self._best, self._tip.header, self)
        blocks = tuple(_new_block(staged) for staged in self._staged.values())
        batch = Batch(blocks, tuple(self._checkpoints()), change, self._tip)
        self._tip = self._best
        self._writing, self._staged = self._staged, {}
        return batch

    def write(self, batch: Batch) -> None:
        """Commit a batch, in any thread. When that fails, nothing of it and nothing staged upon it remains."""
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
        """What the engine wants to know again about some of the staged blocks, as named values of the database."""
        for header in (staged.header for staged in self._staged.values()):
            if header.number % CHECKPOINT_DISTANCE == 0:
                record = self.chain.engine.checkpoint(header, self)
                if record is not None:
                    yield checkpoint_key(header.hash), record

    def rewind(self, tip: Tip) -> None:
        """Go on from another committed block; for development nodes, after `Store.rewind`."""
        self._tip = tip
        self._has_rewound = True
        self.discard()

    def discard(self) -> None:
        """Forget everything staged."""
        self._staged.clear()
        self._best = self._tip
        self._window_end = b""


def _new_block(staged: Staged) -> NewBlock:
    return NewBlock(
        hash=staged.header.hash,
        number=staged.header.number,
        header=staged.header.header.encode(),
        body=staged.body,
        execution=staged.execution,
        total_difficulty=staged.total_difficulty,
    )

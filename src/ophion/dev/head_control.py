"""`HeadControl`: moves the head of a development chain back, edits its state, and adds blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ophion.chain.block_builder import BlockBuilder, BuiltBlock
from ophion.chain.block_import import ImportCore
from ophion.chain.chain import RESTORED_KEY, Chain
from ophion.chain.fork_choice import HeadChange
from ophion.chain.importer import Importer
from ophion.consensus.engine import BlockPreferences, Tip
from ophion.dev.empty_blocks import EmptyBlocks
from ophion.dev.engine import DevEngine
from ophion.errors import OphionError
from ophion.native.exceptions import translated
from ophion.native.executor import AccountOverride, edit_state
from ophion.native.transactions import Transaction
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import EMPTY_TRIE_ROOT, Hash32

if TYPE_CHECKING:
    from ophion.dev.dumped_chain import DumpedBlock

_EDIT_KEY = "edited head"
_HASH_BYTES = 32


def restore_edit(chain: Chain) -> None:
    """Restore the edited state of the head, which an earlier run has stored."""
    record, head = chain.store.meta(_EDIT_KEY), chain.head
    if record and record[:_HASH_BYTES] == head.hash:
        chain.edited_roots[head.number, head.header.state_root] = record[_HASH_BYTES:]


class UnknownHead(OphionError):
    """Raised when the chain cannot be rewound, because the requested block does not exist."""

    def __init__(self, number: int) -> None:
        super().__init__(f"There is no block {number} on this chain to go back to")


class HeadControl:
    """Changes head and state of the chain. The caller must hold `DevSealer.head_lock`."""

    def __init__(self, chain: Chain, importer: Importer, builder: BlockBuilder, engine: DevEngine) -> None:
        self._chain = chain
        self._engine = engine
        self._importer = importer
        self._builder = builder
        self._edited: list[tuple[int, Hash32]] = list(chain.edited_roots)
        """Keys of `Chain.edited_roots`, oldest block first."""
        self._has_stored_edit = bool(chain.edited_roots)

    @property
    def edited_root(self) -> Hash32 | None:
        """Return the root of the head's edited state, or None if the head has no edit."""
        header = self._chain.head.header
        return self._chain.edited_roots.get((header.number, header.state_root))

    async def run(self, job: Callable[[ImportCore], HeadChange | None]) -> None:
        """Run a job that replaces the chain, in the write lane (worker thread). Edits of the previous chain are
        dropped.
        """
        self._edited.clear()
        await self._importer.run(job)

    async def edit(self, changes: Sequence[AccountOverride]) -> None:
        """Change accounts in the state of the head."""
        chain, tip = self._chain, self._chain.tip
        header = tip.header.header

        def job(core: ImportCore) -> HeadChange | None:
            with translated():
                state = chain.store.state(chain.root_after(header))
                edited = edit_state(chain.store, state, changes, header.number)
                self._store_edit(tip.header, edited.root)
            self._register(tip.header, edited.root)
            return None

        await self._importer.run(job)
        chain.rewind(tip)

    def _store_edit(self, header: HashedHeader, root: Hash32 | None) -> None:
        """Store the root of the head's edited state for a restart. With None, the stored root is removed."""
        if root is None and not self._has_stored_edit:
            return
        self._has_stored_edit = root is not None
        record = b"" if root is None else header.hash + root
        self._chain.store.put_meta(_EDIT_KEY, record)

    def _register(self, header: HashedHeader, root: Hash32 | None) -> None:
        """Make `root` the state root of a block. With None, the root in the header applies again."""
        key, roots = (header.number, header.header.state_root), self._chain.edited_roots
        if root is None or root == header.header.state_root:
            if roots.pop(key, None) is not None:
                self._edited.remove(key)
            return
        if key not in roots:
            self._edited.append(key)
        roots[key] = root

    async def rewind(self, head: HashedHeader, edited_root: Hash32 | None = None) -> None:
        """Make an earlier block the head again. `edited_root` is the root of the block's edited state, if any."""
        chain = self._chain
        if head.hash == chain.head.hash and edited_root == self.edited_root:
            chain.rewind(chain.tip)
            return
        total_difficulty = chain.total_difficulty(head.hash)
        if total_difficulty is None:
            raise UnknownHead(head.number)
        tip = Tip(head, total_difficulty)
        self._forget_edits_above(head.number)
        self._register(head, edited_root)

        def job(core: ImportCore) -> HeadChange | None:
            with translated():
                self._make_canonical(head)
                chain.store.rewind(head.hash, chain.root_after(head.header))
                self._store_edit(head, edited_root)
            core.rewind(tip)
            return None

        await self._importer.run(job)
        chain.rewind(tip)

    def _make_canonical(self, head: HashedHeader) -> None:
        """Put the ancestors of a block on the canonical chain, if another branch has replaced some of them. Rows above
        the head of the chain do not count, because they may belong to any branch.
        """
        chain, store, branch = self._chain, self._chain.store, [head.hash]
        block, height = chain.header(head.parent_hash), chain.head.number
        while block is not None and (block.number > height or store.canonical_hash(block.number) != block.hash):
            branch.append(block.hash)
            block = chain.header(block.parent_hash)
        if len(branch) > 1:
            store.commit([], self._canonical_from(head.number + 1 - len(branch)), branch[::-1], [])

    def _canonical_from(self, first: int) -> list[Hash32]:
        """Return the hashes of the canonical chain from its head down to the number `first`."""
        numbers = range(self._chain.head.number, first - 1, -1)
        return [found for found in map(self._chain.store.canonical_hash, numbers) if found is not None]

    async def restore(self, blocks: Sequence[DumpedBlock], changes: Sequence[AccountOverride]) -> bool:
        """Make `blocks` the canonical chain from their first number on, and change accounts in the state of the last.

        Returns False, and changes nothing, if the blocks do not continue this chain.
        """
        chain, store = self._chain, self._chain.store
        kept = 0
        while kept < len(blocks) and store.canonical_hash(blocks[kept].header.number) == blocks[kept].header.hash:
            kept += 1
        added = blocks[kept:]
        if not blocks or (added and not self._continues(added[0].header)):
            return False
        last = blocks[-1].header
        total_difficulty = chain.total_difficulty(added[0].header.parent_hash if added else last.hash) or 0
        records, roots = [], dict[int, Hash32]()
        for block in added:
            total_difficulty += block.header.header.difficulty
            records.append(block.record(total_difficulty))
        tip = Tip(last, total_difficulty)

        def job(core: ImportCore) -> HeadChange | None:
            with translated():
                for block in added:
                    if block.state is not None:
                        state = edit_state(store, store.state(EMPTY_TRIE_ROOT), block.state, block.header.number)
                        roots[block.header.number] = state.root
                edited = edit_state(store, store.state(chain.root_after(chain.head.header)), changes, last.number)
                if added:
                    named = [(RESTORED_KEY, chain.genesis.hash)] if added[0].header.number == 0 else []
                    removed = self._canonical_from(added[0].header.number)
                    store.commit(records, removed, [block.header.hash for block in added], named)
                store.rewind(last.hash, edited.root)
                self._store_edit(last, edited.root)
            roots[last.number] = edited.root
            core.rewind(tip)
            return None

        await self._importer.run(job)
        self._forget_edits_above(last.number if kept == len(blocks) else added[0].header.number - 1)
        for block in blocks:
            if block.header.number in roots:
                self._register(block.header, roots[block.header.number])
        chain.rewind(tip)
        return True

    def _continues(self, first: HashedHeader) -> bool:
        """Whether a block can be added to this chain: its parent is on the chain. A genesis block can be added unless
        this chain forks another chain.
        """
        if first.number == 0:
            return self._chain.canonical(0) is not None
        parent = self._chain.store.canonical_hash(first.number - 1)
        return parent == first.parent_hash and first.number <= self._chain.head.number + 1

    def _forget_edits_above(self, number: int) -> None:
        for key in [key for key in self._edited if key[0] > number]:
            self._edited.remove(key)
            self._chain.edited_roots.pop(key, None)

    async def rewind_to(self, number: int) -> None:
        """Make the block with this number the head. If its state was edited, the edits stay in force."""
        found = self._chain.canonical(number) if 0 <= number <= self._chain.head.number else None
        if found is None:
            raise UnknownHead(number)
        await self.rewind(found, self._chain.edited_roots.get((number, found.header.state_root)))

    async def add_block(
        self, transactions: Sequence[Transaction], preferences: BlockPreferences, deadline_s: float
    ) -> BuiltBlock:
        """Add a block with exactly these transactions. If a transaction cannot be included, no block is added.

        The block executes in the calling thread. Chains without threads use this method.
        """
        chain = self._chain
        parent = chain.head
        draft = self._builder.draft(parent, preferences)
        state = chain.store.state(chain.root_after(parent.header))
        built = self._builder.fill(draft, state, transactions, deadline_s, draft.coinbase)
        if built.body.transaction_count == len(transactions):
            await self._importer.import_built(chain.engine.hashed(built.header), built.body, built.execution)
        return built

    async def add_built(self, blocks: Sequence[tuple[HashedHeader, BuiltBlock]]) -> None:
        """Commit a sequence of blocks that was built on the head, in one write."""

        def job(core: ImportCore) -> HeadChange | None:
            try:
                for header, built in blocks:
                    core.stage_built(header, built.body, built.execution)
                return core.commit()
            finally:
                core.discard()

        await self._importer.run(job)

    async def add_empty(self, count: int, preferences: BlockPreferences, interval: int) -> None:
        """Add empty blocks, `interval` seconds apart. This is much faster than building each block."""
        blocks = EmptyBlocks(self._chain, self._builder, self._engine, preferences, interval, count)
        while blocks.left:
            await self._importer.run(blocks.add, blocks.bodies)

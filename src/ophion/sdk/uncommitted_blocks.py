"""`UncommittedBlocks`: blocks of an embedded chain that are executed and not written yet.

Writing a block takes longer than executing it, and a test often reverts its blocks. So a chain in memory writes several
blocks together: before a request that reads the database, or when `MAX_BLOCKS` blocks wait. A revert drops blocks that
are not written yet.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ophion.chain.ancestor_hashes import MAX_BYTES, ancestor_hashes
from ophion.chain.block_builder import BlockBuilder, BuiltBlock
from ophion.chain.block_environment import EnvOverrides, block_env
from ophion.dev.cheat_codes import DevNode, Snapshot
from ophion.native.executor import BlockEnv, State
from ophion.native.store import NewBlock
from ophion.native.transactions import Transaction
from ophion.primitives.header import HashedHeader, Header

MAX_BLOCKS: Final = 64
"""Number of waiting blocks at which all waiting blocks are written."""

_DEADLINE_S: Final = 30.0
_FREE: Final = EnvOverrides(base_fee=0)


class UncommittedBlock(Struct):
    """A block on top of the chain or of another uncommitted block."""

    header: HashedHeader
    built: BuiltBlock
    state: State
    """The state after the block."""
    parent_hashes: bytes | None
    """Ancestor hashes of the block, newest first; None when all ancestors are committed."""
    call_env: BlockEnv | None = None

    def receipt_json(self) -> bytes | None:
        """Return the receipt of the only transaction, as JSON-RPC shows it."""
        header, built = self.header, self.built
        block = NewBlock(
            hash=header.hash,
            number=header.number,
            header=header.header.encode(),
            body=built.body,
            execution=built.execution,
            total_difficulty=0,
        )
        return block.receipt_json(0, True)


class UncommittedBlocks:
    """Executes transactions, each in a block of its own. The caller must prevent concurrent changes of the chain."""

    def __init__(self, dev: DevNode) -> None:
        self._dev = dev
        self._chain = dev.chain
        self._builder = BlockBuilder(dev.chain, keeps_revert_data=True)
        self._blocks: list[UncommittedBlock] = []
        self._head_hashes: tuple[bytes, bytes] | None = None
        """Hash of the committed head, with the ancestor hashes of the next block."""
        self.top: UncommittedBlock | None = None
        """The latest block; None when all blocks are committed."""

    @property
    def is_full(self) -> bool:
        """Whether `MAX_BLOCKS` blocks wait, so that the caller should commit these blocks."""
        return len(self._blocks) >= MAX_BLOCKS

    @property
    def head(self) -> HashedHeader:
        """The latest block of the chain, committed or not."""
        return self._chain.head if self.top is None else self.top.header

    @property
    def state(self) -> State:
        """The state of the head."""
        return self._dev.queries.head_state if self.top is None else self.top.state

    def draft(self) -> Header:
        """Return the header of the next block."""
        dev = self._dev
        return self._chain.engine.prepare(self.head, dev.preferences(), self._chain)

    def add(self, draft: Header, transaction: Transaction) -> UncommittedBlock | None:
        """Execute a transaction in a block of its own. Returns None when the transaction cannot be included."""
        hashes = self._child_hashes()
        built = self._builder.fill(draft, self.state, (transaction,), _DEADLINE_S, None, hashes)
        if not built.body.transaction_count:
            return None
        header = self._chain.engine.hashed(built.header)
        block = UncommittedBlock(header, built, built.state.merged(), hashes)
        self._blocks.append(block)
        self.top = block
        self._dev.clock.on_block(header.header.timestamp)
        self._dev.engine.on_block()
        return block

    def _child_hashes(self) -> bytes | None:
        """Return the ancestor hashes of the next block; None if all blocks are committed."""
        top = self.top
        if top is None:
            return None
        parents = top.parent_hashes
        if parents is None:
            head = self._chain.head
            if self._head_hashes is None or self._head_hashes[0] != head.hash:
                self._head_hashes = head.hash, ancestor_hashes(self._chain.store, self._chain.header, head)
            parents = self._head_hashes[1]
        return (top.header.hash + parents)[:MAX_BYTES]

    def call_env(self, block: UncommittedBlock) -> BlockEnv:
        """Return the environment of calls at a block: the environment of its transaction, with a base fee of 0."""
        if block.call_env is None:
            chain, header = self._chain, block.header.header
            is_free = header.base_fee_per_gas is not None
            block.call_env = (
                block_env(chain.spec, chain.rules, header, header.coinbase, block.parent_hashes, _FREE)
                if is_free
                else block.built.env
            )
        return block.call_env

    def find(self, number: int) -> UncommittedBlock | None:
        """Return the block with this number; None when it is committed or does not exist."""
        blocks = self._blocks
        place = number - blocks[0].header.number if blocks else -1
        return blocks[place] if 0 <= place < len(blocks) else None

    def by_hash(self, hash: bytes) -> UncommittedBlock | None:
        """Return the block with this hash; None when it is committed or does not exist."""
        return next((one for one in reversed(self._blocks) if one.header.hash == hash), None)

    def save(self) -> int:
        """Save a snapshot of the chain with its uncommitted blocks."""
        edited_root = self._dev.head.edited_root if self.top is None else None
        return self._dev.save(self.head, edited_root)

    def revert(self, number: int, snapshot: Snapshot) -> bool:
        """Revert to a snapshot. Returns False if the head of the snapshot is neither the committed head nor an
        uncommitted block, or if the state of the committed head was edited since.
        """
        kept = 0
        if snapshot.head.hash != self._chain.head.hash:
            block = self.by_hash(snapshot.head.hash)
            if block is None:
                return False
            kept = block.header.number - self._chain.head.number
        elif snapshot.edited_root != self._dev.head.edited_root:
            return False
        self._keep(kept)
        self._dev.restore_settings(number, snapshot)
        return True

    def _keep(self, count: int) -> None:
        del self._blocks[count:]
        self.top = self._blocks[-1] if self._blocks else None

    def drop(self) -> None:
        """Drop all uncommitted blocks."""
        self._keep(0)

    def take(self) -> list[tuple[HashedHeader, BuiltBlock]]:
        """Remove and return all uncommitted blocks, so that the caller can commit these blocks."""
        blocks = [(one.header, one.built) for one in self._blocks]
        self._keep(0)
        return blocks

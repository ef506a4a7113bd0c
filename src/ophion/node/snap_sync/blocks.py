"""Verifies blocks and receipts of peers against their headers, without execution, and writes them to the database.

The consensus engine verifies each header, from the genesis block on: a quorum of the known validators has sealed it.
The header names the roots of the body and the receipts. With a trusted hash of the last block, the hashes of all blocks
are known, and the seals are not verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from ophion.chain import validation
from ophion.chain.block import ommers_of
from ophion.chain.chain import Chain, checkpoint_key
from ophion.chain.events import ChainBlock
from ophion.chain.fork_choice import HeadChange
from ophion.consensus.engine import Tip
from ophion.consensus.header_rules import blob_base_fee
from ophion.consensus.header_snapshots import CHECKPOINT_DISTANCE
from ophion.errors import InvalidBlock, InvalidHeader, OphionError, SnapSyncError, UnknownParent
from ophion.native.exceptions import translated
from ophion.native.store import NewBlock
from ophion.native.wire import Receipts
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Hash32

HASH_OPTION = "--sync-checkpoint-hash"

HashOf: TypeAlias = "Callable[[int], Hash32 | None]"
"""Returns the hash that the block with this number must have, or None if the number is out of range. The hashes come
from `TrustedHashes`.
"""


class ValidatorsUnknown(SnapSyncError):
    """Raised when the seals of a block cannot be verified, because the state of the validator contract is not
    downloaded yet.
    """

    def __init__(self, number: int) -> None:
        super().__init__(
            f"A contract names the validators of block {number}, and its state is not known: give the hash of a recent"
            f" block with {HASH_OPTION}."
        )


class ReceivedBlocks:
    """Verifies downloaded blocks and writes them. Implements `HeaderReader` for the written blocks and for the blocks
    of the batch that is being verified.
    """

    def __init__(self, chain: Chain, known_hash: HashOf | None = None) -> None:
        """Create the writer for `chain`, the chain in the new database. Its head is the last written block, whose state
        may be missing.

        If `known_hash` is given, every block must have the hash that it returns, and no seal is verified.
        """
        self._chain = chain
        self._known_hash = known_hash
        self._batch: dict[Hash32, tuple[HashedHeader, int]] = {}

    # --- HeaderReader ---------------------------------------------------------------------------

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        """Return the header of a block that is written or in the current batch, or None."""
        found = self._batch.get(block_hash)
        return self._chain.header(block_hash) if found is None else found[0]

    def canonical(self, number: int) -> HashedHeader | None:
        """Return the canonical header with this number, if the block is written."""
        return self._chain.canonical(number)

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Return the total difficulty of a block that is written or in the current batch, or None."""
        found = self._batch.get(block_hash)
        return self._chain.total_difficulty(block_hash) if found is None else found[1]

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """Return the ommers of a written block."""
        return self._chain.ommers(block_hash)

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """Return the checkpoint that the engine has stored for a block, or None."""
        return self._chain.checkpoint(block_hash)

    # --- a batch --------------------------------------------------------------------------------

    def verify(self, blocks: Sequence[ChainBlock], now: int) -> None:
        """Verify the headers and bodies of consecutive blocks. The caller has already checked that each body has the
        roots in its header.

        Raises `InvalidBlock`. Runs in a worker thread.
        """
        self._batch = {}
        for block in blocks:
            self._verify(block.header, block, now)

    def verify_headers(self, headers: Sequence[HashedHeader], now: int) -> None:
        """Verify consecutive headers without bodies, and write nothing. Raises `InvalidBlock`."""
        self._batch = {}
        for header in headers:
            self._verify(header, None, now)
        self._batch = {}

    def _verify(self, header: HashedHeader, block: ChainBlock | None, now: int) -> None:
        engine, spec = self._chain.engine, self._chain.spec
        parent = self.header(header.parent_hash)
        difficulty = self.total_difficulty(header.parent_hash)
        if parent is None or difficulty is None or header.number != parent.number + 1:
            raise UnknownParent(header.number, header.parent_hash, header.number - 1)
        try:
            if self._known_hash is None:
                engine.verify(header, parent, self, now)
            elif self._known_hash(header.number) != header.hash:
                raise InvalidHeader("hash", header.hash, "the ancestor of the trusted block")
            if block is not None:
                if self._known_hash is None:
                    engine.verify_ommers(header, ommers_of(block.body), self)
                validation.check_body(header.header, block.body, spec.fork_of(header.header))
        except OphionError as error:
            if "of the contract" in str(error):
                raise ValidatorsUnknown(header.number) from error
            if isinstance(error, InvalidBlock):
                raise error.at(header.number, header.hash) from error
            raise
        self._batch[header.hash] = (header, difficulty + header.header.difficulty)

    def write(self, blocks: Sequence[ChainBlock], receipts: Sequence[Receipts]) -> None:
        """Write verified blocks in one database transaction. Blocks on another branch above their parent leave the
        chain. Runs in a worker thread.
        """
        chain = self._chain
        records = [self._record(block, found) for block, found in zip(blocks, receipts, strict=True)]
        is_next = chain.head.hash == blocks[0].header.parent_hash
        removed = () if is_next else tuple(self._from(blocks[0].header.number))
        with translated():
            chain.store.commit(
                records,
                [header.hash for header in removed],
                [block.header.hash for block in blocks],
                list(self._checkpoints(blocks)),
            )
        last, difficulty = self._batch[blocks[-1].header.hash]
        added = tuple(block.header for block in blocks)
        chain.advance(HeadChange(removed, added, Tip(last, difficulty)), {})
        self._batch = {}

    def rewind(self, header: HashedHeader, named: list[tuple[str, bytes]]) -> None:
        """Make a canonical block, whose state is stored, the head, and write the key-value pairs `named`, in one
        database transaction.
        """
        chain = self._chain
        removed = tuple(self._from(header.number))
        with translated():
            chain.store.commit([], [one.hash for one in removed], [header.hash], named)
            difficulty = chain.store.total_difficulty(header.hash)
        if difficulty is None:
            raise UnknownParent(header.number, header.parent_hash, header.number - 1)
        chain.advance(HeadChange(removed, (header,), Tip(header, difficulty)), {})

    def _from(self, first: int) -> Iterator[HashedHeader]:
        """Yield the canonical blocks from the head down to the number `first`."""
        header = self._chain.head
        while header.number >= first:
            yield header
            parent = self._chain.header(header.parent_hash)
            if parent is None:
                raise UnknownParent(header.number, header.parent_hash, header.number - 1)
            header = parent

    def _record(self, block: ChainBlock, receipts: Receipts) -> NewBlock:
        header = block.header
        with translated():
            return NewBlock.received(
                hash=header.hash,
                number=header.number,
                header=header.header.encode(),
                body=block.body,
                receipts=receipts,
                total_difficulty=self._batch[header.hash][1],
                blob_price=self._blob_price(header.header),
            )

    def _blob_price(self, header: Header) -> int:
        """Return the price of blob gas in wei; 0 before Cancun."""
        blobs = self._chain.spec.fork_of(header).blobs
        return 0 if blobs is None else blob_base_fee(header.excess_blob_gas or 0, blobs.fee_fraction)

    def _checkpoints(self, blocks: Sequence[ChainBlock]) -> Iterator[tuple[str, bytes]]:
        """Yield the database keys and values of the engine's checkpoints (signers or vote tallies) after these
        blocks.
        """
        for block in blocks:
            if block.header.number % CHECKPOINT_DISTANCE == 0:
                record = self._chain.engine.checkpoint(block.header, self)
                if record is not None:
                    yield checkpoint_key(block.header.hash), record

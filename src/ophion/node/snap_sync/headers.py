"""Verifies headers of peers from the genesis block on, and writes them to the database without bodies.

Each header names its parent by hash. So the seals of one IBFT 2.0 or QBFT header prove all headers before it, because a
quorum of the known validators has sealed it. The seals are therefore verified only

- of the last header of each batch, and
- of each header after which the validators change: the old validators have sealed this header, and it proves the votes
  in the headers before it.

The hash does not cover the seals. The seals of the other headers are verified later, with their bodies
(`peers/sync/block_history.py`).

A Clique header has the seal of a single signer, which proves nothing about other headers. So each Clique header is
verified with its seal. With a trusted hash of the last block, the hashes of all blocks are known, and no seal is
verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from ophion.chain.chain import Chain, checkpoint_key
from ophion.chain.fork_choice import HeadChange
from ophion.consensus.clique_to_qbft import is_final_at
from ophion.consensus.engine import Tip
from ophion.consensus.header_rules import blob_base_fee
from ophion.consensus.header_snapshots import CHECKPOINT_DISTANCE
from ophion.errors import InvalidBlock, InvalidHeader, OphionError, SnapSyncError, UnknownParent
from ophion.native.exceptions import translated
from ophion.native.store import BlockHistory
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address, Hash32

HASH_OPTION = "--sync-checkpoint-hash"
LAST_HEADER_KEY: Final = "snap header"
"""Database key of the number of the last written header. The end of the state download deletes it."""

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


class ReceivedHeaders:
    """Verifies downloaded headers and writes them. Implements `HeaderReader` for the written headers and for the
    headers of the batch that is being verified.
    """

    def __init__(self, chain: Chain, known_hash: HashOf | None = None) -> None:
        """Create the writer for `chain`, the chain in the new database. In memory, its head becomes the last written
        header.

        If `known_hash` is given, every block must have the hash that it returns, and no seal is verified.
        """
        self._chain = chain
        self._known_hash = known_hash
        self._batch: dict[Hash32, tuple[HashedHeader, int]] = {}
        self._members: tuple[Address, ...] | None = None
        """Validators after the header that was verified last; None at the start of a batch."""
        with translated():
            self._history = BlockHistory(chain.store)
        # move only the head in memory: the head in the database stays the genesis block, because no later block has a
        # state yet
        self.move_to(self._stored())

    # --- HeaderReader ---------------------------------------------------------------------------

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        """Return a header that is written or in the current batch, or None."""
        found = self._batch.get(block_hash)
        return self._chain.header(block_hash) if found is None else found[0]

    def canonical(self, number: int) -> HashedHeader | None:
        """Return the canonical header with this number, if it is written."""
        return self._chain.canonical(number)

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Return the total difficulty of a block that is written or in the current batch, or None."""
        found = self._batch.get(block_hash)
        return self._chain.total_difficulty(block_hash) if found is None else found[1]

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """Return no ommers, because bodies are not known."""
        return ()

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """Return the checkpoint that the engine has stored for a block, or None."""
        return self._chain.checkpoint(block_hash)

    # --- a batch --------------------------------------------------------------------------------

    def add(self, headers: Sequence[HashedHeader], now: int) -> None:
        """Verify consecutive headers and write them in one database transaction. Written headers of another branch,
        from the first of the new block numbers on, leave the chain.

        Raises the errors of `verify`. Runs in a worker thread.
        """
        self.verify(headers, now)
        rows = [
            (
                header.hash,
                header.number,
                header.header.encode(),
                self._batch[header.hash][1],
                self._blob_price(header.header),
            )
            for header in headers
        ]
        named = [(LAST_HEADER_KEY, headers[-1].number.to_bytes(8, "big")), *self._checkpoints(headers)]
        with translated():
            self._history.put_headers(rows, named)
        self.move_to(headers[-1])
        self._batch = {}

    def verify(self, headers: Sequence[HashedHeader], now: int) -> None:
        """Verify headers in a worker thread, and write nothing. Raises `InvalidBlock` or `ValidatorsUnknown`."""
        self._batch = {}
        self._members = None
        for header in headers:
            try:
                self._verify(header, header is headers[-1], now)
            except OphionError as error:
                if "of the contract" in str(error):
                    raise ValidatorsUnknown(header.number) from error
                if isinstance(error, InvalidBlock):
                    raise error.at(header.number, header.hash) from error
                raise

    def _verify(self, header: HashedHeader, is_last: bool, now: int) -> None:
        engine = self._chain.engine
        parent = self.header(header.parent_hash)
        difficulty = self.total_difficulty(header.parent_hash)
        if parent is None or difficulty is None or header.number != parent.number + 1:
            raise UnknownParent(header.number, header.parent_hash, header.number - 1)
        self._batch[header.hash] = (header, difficulty + header.header.difficulty)
        if self._known_hash is not None:
            if self._known_hash(header.number) != header.hash:
                raise InvalidHeader("hash", header.hash, "the ancestor of the trusted block")
        elif not is_final_at(engine, header.number):
            engine.verify(header, parent, self, now)
        else:
            before = self._members or engine.members(parent, self)
            self._members = engine.members(header, self)
            if is_last or self._members != before:
                engine.verify(header, parent, self, now)

    def look_ahead(self, headers: Sequence[HashedHeader]) -> None:
        """Recover the signers of Clique headers on all cores. Without this call, `verify` recovers them one by one."""
        engine = self._chain.engine
        if self._known_hash is None and not is_final_at(engine, headers[0].number):
            engine.look_ahead(headers)

    def _checkpoints(self, headers: Sequence[HashedHeader]) -> Iterator[tuple[str, bytes]]:
        """Yield the database keys and values of the engine's checkpoints (signers or vote tallies) after these
        headers.
        """
        for header in headers:
            if header.number % CHECKPOINT_DISTANCE == 0:
                record = self._chain.engine.checkpoint(header, self)
                if record is not None:
                    yield checkpoint_key(header.hash), record

    def _blob_price(self, header: Header) -> int:
        """Return the price of blob gas in wei; 0 before Cancun."""
        blobs = self._chain.spec.fork_of(header).blobs
        return 0 if blobs is None else blob_base_fee(header.excess_blob_gas or 0, blobs.fee_fraction)

    # --- the written headers --------------------------------------------------------------------

    def move_to(self, header: HashedHeader) -> None:
        """Make a written header the head of the chain in memory."""
        difficulty = self._chain.total_difficulty(header.hash)
        if difficulty is None:
            raise UnknownParent(header.number, header.parent_hash, header.number - 1)
        self._chain.advance(HeadChange((), (), Tip(header, difficulty)), {})

    def _stored(self) -> HashedHeader:
        number = self._chain.store.meta(LAST_HEADER_KEY)
        found = None if number is None else self._chain.canonical(int.from_bytes(number, "big"))
        return self._chain.head if found is None else found

"""Verifies the headers of a checkpoint, from the genesis block on.

The header of a BFT block names its parent by hash, and a quorum of its validators has sealed it. So the seals of the
last header prove all headers before it, if its validators are known. They follow from the genesis file and from the
headers with votes. Only these and the last header are decoded and their seals recovered; all other headers are hashed.
This takes a tenth of the time of the rules for each header, which apply to Clique, and where this fast path fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, Protocol

from ophion.chainspec.spec import ChainSpec
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.qbft import Qbft
from ophion.consensus.engine import Engine
from ophion.errors import CheckpointError, DecodeError, InvalidBlock, OphionError, ProofError
from ophion.native.crypto import keccak256
from ophion.native.store import Store
from ophion.primitives import rlp
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import Hash32
from ophion.proofs.seals import BftSeals
from ophion.proofs.trust import Trust

HASH_OPTION: Final = "--sync-checkpoint-hash"
_BATCH: Final = 1024
"""Headers whose seals are recovered together, on all cores."""
_CACHED_HEADERS: Final = 4096
_MAX_FIELDS: Final = 32
_PARENT, _NUMBER, _EXTRA = 0, 8, 12
_EXTRA_ITEMS: Final = 5


class OnProgress(Protocol):
    """Called with a step, the amount done and the total. If it raises, verification stops."""

    def __call__(self, step: str, done: int, total: int) -> None: ...


class StoredHeaders:
    """`HeaderReader` of the canonical chain of a database. Computes the hash of every header that it reads."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store = store
        self._engine = engine
        self._load = lru_cache(maxsize=_CACHED_HEADERS)(self._read)

    def raw(self, number: int) -> tuple[Hash32, bytes]:
        """Return hash and RLP of the canonical header with this number. The hash is not checked."""
        block_hash = self._store.canonical_hash(number)
        raw = None if block_hash is None else self._store.header(block_hash)
        if block_hash is None or raw is None:
            raise CheckpointError(f"header {number} is missing")
        return block_hash, raw

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        """Return a header, or None."""
        return self._load(block_hash)

    def canonical(self, number: int) -> HashedHeader | None:
        """Return the canonical header with this number, or None."""
        block_hash = self._store.canonical_hash(number)
        return None if block_hash is None else self._load(block_hash)

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Return the stored total difficulty. `Store.check` compares it with the sum."""
        return self._store.total_difficulty(block_hash)

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """Return nothing: chains with seals have no ommers."""
        return ()

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """Return nothing: stored tallies are not trusted."""
        return None

    def _read(self, block_hash: Hash32) -> HashedHeader | None:
        raw = self._store.header(block_hash)
        if raw is None:
            return None
        found = self._engine.hashed(Header.decode(raw))
        if found.hash != block_hash:
            raise CheckpointError(f"header {found.number} does not hash to 0x{block_hash.hex()}")
        return found


def verify_headers(
    headers: StoredHeaders,
    spec: ChainSpec,
    engine: Engine,
    first: HashedHeader,
    last: int,
    checks_seals: bool,
    now: int,
    on_progress: OnProgress,
) -> Hash32:
    """Verify the headers after the genesis header `first` up to the number `last`, and return the hash of the last.

    Without `checks_seals`, only the hashes are checked. Raises `CheckpointError`.
    """
    if isinstance(engine, BftEngine):
        try:
            return _verify_votes(headers, spec, engine, first, last, checks_seals, on_progress)
        except (ProofError, DecodeError):
            pass  # a header that the rules may accept in another form: they decide
    parent = first
    following = _in_order(headers, last)
    while batch := list(islice(following, _BATCH)):
        if checks_seals:
            engine.look_ahead(batch)
        for header in batch:
            if header.number != parent.number + 1 or header.parent_hash != parent.hash:
                raise CheckpointError(f"header {header.number} does not follow header {parent.number}")
            if checks_seals:
                _verify_header(header, parent, headers, engine, now)
            parent = header
        on_progress("headers", parent.number, last)
    return parent.hash


def _verify_votes(
    headers: StoredHeaders,
    spec: ChainSpec,
    engine: BftEngine,
    first: HashedHeader,
    last: int,
    checks_seals: bool,
    on_progress: OnProgress,
) -> Hash32:
    """Check the hashes of all headers, and the seals of the last header and of headers with votes."""
    genesis_extra = engine.protocol(0).decode_extra(first.header.extra_data)
    seals = BftSeals(Trust(spec, engine, 0, tuple(sorted(set(genesis_extra.validators)))), engine)
    parent_hash = first.hash
    for number in range(1, last + 1):
        block_hash, raw = headers.raw(number)
        found_hash, has_vote = _hash_and_vote(raw, number, parent_hash, isinstance(engine.protocol(number), Qbft))
        if found_hash != block_hash:
            raise ProofError(f"header {number} does not hash to 0x{block_hash.hex()}")
        if checks_seals and (has_vote or number == last):
            seals.accept(Header.decode(raw))
        parent_hash = block_hash
        if number % _BATCH == 0:
            on_progress("headers", number, last)
    return parent_hash


def _hash_and_vote(raw: bytes, number: int, parent_hash: Hash32, is_qbft: bool) -> tuple[Hash32, bool]:
    """Return the block hash of an encoded header, and whether the header has a vote.

    Must agree with `BftEngine.hashed`; `test_header_chain.py` compares them. Raises `DecodeError` or `ProofError`.
    """
    fields = rlp.split_list(raw, _MAX_FIELDS)
    if len(fields) <= _EXTRA:
        raise ProofError(f"header {number} has {len(fields)} fields")
    if fields[_PARENT] != b"\xa0" + parent_hash or fields[_NUMBER] != rlp.encode_int(number):
        raise ProofError(f"header {number} does not follow header {number - 1}")
    is_list, start, end = rlp.head(fields[_EXTRA], 0)
    items = [] if is_list else rlp.split_list(fields[_EXTRA][start:end], _EXTRA_ITEMS)
    if len(items) != _EXTRA_ITEMS:
        raise ProofError(f"header {number} has no extra data of BFT")
    vote = items[2]
    hashed_items = [*items[:3], rlp.EMPTY_STRING, rlp.EMPTY_LIST] if is_qbft else items[:3]
    fields[_EXTRA] = rlp.encode_bytes(rlp.list_of(hashed_items))
    return keccak256(rlp.list_of(fields)), vote != (rlp.EMPTY_LIST if is_qbft else rlp.EMPTY_STRING)


def _verify_header(
    header: HashedHeader, parent: HashedHeader, headers: StoredHeaders, engine: Engine, now: int
) -> None:
    try:
        engine.verify(header, parent, headers, now)
    except OphionError as error:
        if isinstance(error, InvalidBlock):
            error = error.at(header.number, header.hash)
        hint = ""
        if "of the contract" in str(error):
            hint = f". A contract names the validators: give the hash of the checkpoint's last block with {HASH_OPTION}"
        raise CheckpointError(f"{error}{hint}") from error


def _in_order(headers: StoredHeaders, last: int) -> Iterator[HashedHeader]:
    for number in range(1, last + 1):
        found = headers.canonical(number)
        if found is None:
            raise CheckpointError(f"header {number} is missing")
        yield found

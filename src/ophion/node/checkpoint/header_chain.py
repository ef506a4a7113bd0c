"""Verifies the headers of a checkpoint, from the genesis block on.

Each header of a BFT chain names its parent by hash, and a quorum of validators has sealed each header. So the seals of
the last header prove all earlier headers, if the validators of the last block are known. The validators follow from the
genesis file and from the headers with votes, which are verified in order. All other headers are hashed without
decoding. The block hash covers the list of validators, but not the seals, so the seals are compared with the list. This
check is a fast path that takes half the time of the full header rules. The full rules apply to Clique, and to chains on
which the fast path fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, Protocol

from msgspec import Struct

from ophion.chainspec.spec import ChainSpec
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.validator_set import quorum_of
from ophion.consensus.engine import Engine
from ophion.errors import CheckpointError, DecodeError, InvalidBlock, OphionError, ProofError
from ophion.native.crypto import keccak256, recover_addresses
from ophion.native.store import Store
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import ADDRESS_LENGTH, SIGNATURE_LENGTH, Address, Hash32, Signature
from ophion.proofs.header_verification import BftSeals
from ophion.proofs.trust_anchor import TrustAnchor

HASH_OPTION: Final = "--sync-checkpoint-hash"
_BATCH: Final = 1024
"""Number of headers whose seals are recovered together, on all cores."""
_CACHED_HEADERS: Final = 4096
_MAX_FIELDS: Final = 32
_PARENT, _NUMBER, _EXTRA = 0, 8, 12
_EXTRA_ITEMS: Final = 5


class OnProgress(Protocol):
    """Callback that receives the name of a step, the amount done and the total. If the callback raises, the
    verification stops.
    """

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
        """Return the canonical header with this hash, or None."""
        return self._load(block_hash)

    def canonical(self, number: int) -> HashedHeader | None:
        """Return the canonical header with this number, or None."""
        block_hash = self._store.canonical_hash(number)
        return None if block_hash is None else self._load(block_hash)

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Return the stored total difficulty. `Store.check` compares the stored value with the sum of difficulties."""
        return self._store.total_difficulty(block_hash)

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """Return no ommers, because chains with seals have no ommers."""
        return ()

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """Return None, because the vote tallies in a downloaded database are not trusted."""
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
    """Verify the headers after the genesis header `first` up to number `last`. Returns the hash of the last header.

    Without `checks_seals`, only the hashes are checked. Raises `CheckpointError`.
    """
    if isinstance(engine, BftEngine):
        try:
            return _verify_votes(headers, spec, engine, first, last, checks_seals, on_progress)
        except (ProofError, DecodeError):
            pass  # the fast path does not accept every valid header: verify all headers again with the full rules
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
    """Check hashes and seals of all headers on the fast path.

    In headers with votes and in the last header, also check that the listed validators are the validators of the
    header's height.
    """
    genesis_extra = engine.protocol(0).decode_extra(first.header.extra_data)
    seals = BftSeals(TrustAnchor(spec, engine, 0, tuple(sorted(set(genesis_extra.validators)))), engine)
    parent_hash = first.hash
    batch: list[_Outline] = []
    for number in range(1, last + 1):
        block_hash, raw = headers.raw(number)
        outline = outline_of(raw, number, parent_hash, isinstance(engine.protocol(number), Qbft))
        if outline.hash != block_hash:
            raise ProofError(f"header {number} does not hash to 0x{block_hash.hex()}")
        if checks_seals and (outline.has_vote or number == last):
            seals.accept(Header.decode(raw))
        parent_hash = block_hash
        batch.append(outline)
        if number % _BATCH == 0 or number == last:
            _check_seals(batch)
            batch.clear()
            on_progress("headers", number, last)
    return parent_hash


class _Outline(Struct, frozen=True):
    """The parts of a header that the fast path reads."""

    number: int
    hash: Hash32
    digest: Hash32
    """The hash that validators seal."""
    validators: tuple[Address, ...]
    """Validators that the header lists; empty if a contract names the validators."""
    has_vote: bool
    seals: tuple[Signature, ...]


def _check_seals(outlines: Sequence[_Outline]) -> None:
    """Check that a quorum of the listed validators has sealed each header. Recovers the seals on all cores."""
    authors = iter(recover_addresses([(one.digest, seal) for one in outlines for seal in one.seals]))
    for one in outlines:
        found = set(islice(authors, len(one.seals)))
        if not one.validators:
            continue
        is_whole = len(found) == len(one.seals) and found.issubset(one.validators)
        if not is_whole or len(found) < quorum_of(len(one.validators)):
            raise ProofError(f"header {one.number} has not the seals of a quorum of its validators")


def outline_of(raw: bytes, number: int, parent_hash: Hash32, is_qbft: bool) -> _Outline:
    """Read the fast path's fields of an encoded header, whose parent hash must be `parent_hash`.

    The result must agree with `BftEngine`; `test_header_chain.py` compares both. Raises `DecodeError` or `ProofError`.
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
    seals = _strings(items[4], SIGNATURE_LENGTH, number)

    def hash_with(*extra_items: bytes) -> Hash32:
        fields[_EXTRA] = rlp.encode_bytes(rlp.list_of(extra_items))
        return keccak256(rlp.list_of(fields))

    omitted = (rlp.EMPTY_STRING, rlp.EMPTY_LIST) if is_qbft else ()
    return _Outline(
        number=number,
        hash=hash_with(*items[:3], *omitted),
        digest=hash_with(*items[:4], *omitted[1:]),
        validators=_strings(items[1], ADDRESS_LENGTH, number),
        has_vote=items[2] != (rlp.EMPTY_LIST if is_qbft else rlp.EMPTY_STRING),
        seals=seals,
    )


def _strings(encoded: bytes, length: int, number: int) -> tuple[bytes, ...]:
    """Decode an RLP list of byte strings that all have the size `length`."""
    found = rlp.split_list(encoded, len(encoded) // length)
    starts = [rlp.head(one, 0)[1] for one in found]
    strings = tuple(one[start:] for one, start in zip(found, starts, strict=True))
    if any(len(one) != length for one in strings):
        raise ProofError(f"the extra data of header {number} is malformed")
    return strings


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

"""Verifies the database of a checkpoint, then removes what was not verified.

    genesis    its hash is that of the genesis file
    headers    each header follows the rules and has its seals, from the genesis validators on
    contents   `Store.check`: bodies and receipts match the headers, all hashes of the head's state are right
    rest       side blocks, older states, private data and values of the other node are deleted

Stored vote tallies and total difficulties are not trusted: the former are ignored, the latter computed again. With a
trusted hash of the last block, the hashes of the headers are enough, because each names its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from ophion.chain.chain import FIRST_STATE_KEY, genesis_header
from ophion.chainspec.config_compatibility import RULES_KEY, check_rules, lasting_rules
from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.genesis import Genesis, check_stored
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.engine import Engine
from ophion.consensus.registry import engine_for
from ophion.errors import CheckpointError, InvalidBlock, OphionError
from ophion.native.exceptions import NativeError, translated
from ophion.native.store import Store, open_store
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import Hash32

_BATCH: Final = 1024
"""Headers whose seals are recovered together, on all cores."""
_CACHED_HEADERS: Final = 4096
_MAX_FINDINGS: Final = 3
_PRUNED_A_STEP: Final = 10_000
HASH_OPTION: Final = "--sync-checkpoint-hash"


class OnProgress(Protocol):
    """Called with a step, the amount done and the total. If it raises, verification stops."""

    def __call__(self, step: str, done: int, total: int) -> None: ...


class Verified(Struct, frozen=True):
    """The last block of a verified checkpoint."""

    number: int
    hash: Hash32


class StoredHeaders:
    """`HeaderReader` of the canonical chain of a database. Computes the hash of every header that it reads."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store = store
        self._engine = engine
        self._load = lru_cache(maxsize=_CACHED_HEADERS)(self._read)

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


def verify(
    folder: Path, genesis: Genesis, trusted_hash: Hash32 | None, now: Callable[[], int], on_progress: OnProgress
) -> Verified:
    """Verify the database in `folder` and delete what is not verified. Raises `CheckpointError`.

    `trusted_hash` is the hash of the last block, from a source that the operator trusts.
    """
    engine = engine_for(genesis.spec)
    try:
        with closing(open_store(folder, create=False, read_only=True)) as store, translated():
            verified = _verify_chain(store, genesis, engine, trusted_hash, now(), on_progress)
            findings = store.check(_MAX_FINDINGS, lambda done, total: on_progress("contents", done, total))
            if findings:
                raise CheckpointError("; ".join(findings))
        with closing(open_store(folder, create=False)) as store, translated():
            _remove_rest(store, verified, on_progress)
            store.sync()
    except CheckpointError:
        raise
    except (OphionError, NativeError) as error:
        raise CheckpointError(str(error)) from error
    return verified


def _verify_chain(
    store: Store, genesis: Genesis, engine: Engine, trusted_hash: Hash32 | None, now: int, on_progress: OnProgress
) -> Verified:
    first = genesis_header(store, genesis, engine)
    stored, head = store.canonical_hash(0), store.head()
    if stored is None or head is None:
        raise CheckpointError("it holds no chain")
    check_stored(first.hash, stored)
    if store.total_difficulty(first.hash) != first.header.difficulty:
        raise CheckpointError("the total difficulty of the genesis block is wrong")
    head_hash, number = head
    if trusted_hash is not None and head_hash != trusted_hash:
        raise CheckpointError(
            f"its last block {number} has the hash 0x{head_hash.hex()}, and {HASH_OPTION} names 0x{trusted_hash.hex()}"
        )
    if trusted_hash is None and not _has_seals(genesis.spec):
        raise CheckpointError(
            f"blocks of {engine.name} have no validators' seals; give the hash of its last block with {HASH_OPTION}"
        )
    headers = StoredHeaders(store, engine)
    last = _verify_headers(headers, engine, first, number, trusted_hash is None, now, on_progress)
    if last.hash != head_hash:
        raise CheckpointError(f"block {number} of the chain is not its last block 0x{head_hash.hex()}")
    rules = store.meta(RULES_KEY)
    if rules:
        check_rules(rules, lasting_rules(genesis.spec), last.header)
    return Verified(number, head_hash)


def _has_seals(spec: ChainSpec) -> bool:
    """Whether every block has the seal of a validator. Proof of work has none, nor have blocks after the merge."""
    return spec.engine is not EngineKind.ETHASH and spec.terminal_total_difficulty is None


def _verify_headers(
    headers: StoredHeaders,
    engine: Engine,
    first: HashedHeader,
    number: int,
    checks_seals: bool,
    now: int,
    on_progress: OnProgress,
) -> HashedHeader:
    parent = first
    following = _in_order(headers, number)
    while batch := list(islice(following, _BATCH)):
        if checks_seals:
            engine.look_ahead(batch)
        for header in batch:
            if header.number != parent.number + 1 or header.parent_hash != parent.hash:
                raise CheckpointError(f"header {header.number} does not follow header {parent.number}")
            if checks_seals:
                _verify_header(header, parent, headers, engine, now)
            parent = header
        on_progress("headers", parent.number, number)
    return parent


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


def _remove_rest(store: Store, verified: Verified, on_progress: OnProgress) -> None:
    store.retain_checked()
    store.put_meta(FIRST_STATE_KEY, verified.number.to_bytes(8, "big"))
    pruning = store.begin_pruning(verified.number)
    for step in (pruning.forget, pruning.mark, pruning.sweep):
        while step(_PRUNED_A_STEP):
            on_progress("removal", pruning.freed, 0)

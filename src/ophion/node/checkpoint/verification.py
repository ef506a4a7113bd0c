"""Verifies the database of a checkpoint, and removes what is not verified.

    genesis    its hash is that of the genesis file
    headers    `header_chain`: hashes and seals, from the genesis validators on
    rest       side blocks, older states, private data and settings of the other node are deleted
    contents   `Store.check`: bodies and receipts match the headers, all hashes of the head's state are right

Stored vote tallies and total difficulties are not trusted: tallies are ignored, and total difficulties are computed
again. With a trusted hash of the last block, the hashes of the headers are enough, because each header names its
parent.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec import Struct

from ophion.chain.chain import genesis_header
from ophion.chainspec.config_compatibility import block_rules, check_rules
from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.genesis import Genesis, check_stored
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.engine import Engine
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CheckpointError, OphionError
from ophion.native.exceptions import NativeError, translated
from ophion.native.store import RULES_KEY, Store, open_store
from ophion.node.checkpoint.header_chain import HASH_OPTION, OnProgress, StoredHeaders, verify_headers
from ophion.node.checkpoint.removal import remove_rest
from ophion.primitives.header import Header
from ophion.primitives.types import Hash32

_MAX_FINDINGS: Final = 3


class VerifiedCheckpoint(Struct, frozen=True):
    """The last block of a verified checkpoint."""

    number: int
    hash: Hash32


def verify(
    folder: Path, genesis: Genesis, trusted_hash: Hash32 | None, now: Callable[[], int], on_progress: OnProgress
) -> VerifiedCheckpoint:
    """Verify the database in `folder` and delete what is not verified. Raises `CheckpointError`.

    `trusted_hash` is the hash of the last block, from a source that the operator trusts.
    """
    engine = engine_for(genesis.spec)
    try:
        with closing(open_store(folder, create=False, read_only=True)) as store, translated():
            verified = _verify_chain(store, genesis, engine, trusted_hash, now(), on_progress)
        with closing(open_store(folder, create=False)) as store, translated():
            remove_rest(store, lambda done: on_progress("removal", done, 0))
            # check the contents after the removal, so that the check covers exactly what the node will read
            findings = store.check(_MAX_FINDINGS, lambda done, total: on_progress("contents", done, total))
            if findings:
                raise CheckpointError("; ".join(findings))
            store.sync()
    except CheckpointError:
        raise
    except (OphionError, NativeError) as error:
        raise CheckpointError(str(error)) from error
    return verified


def _verify_chain(
    store: Store, genesis: Genesis, engine: Engine, trusted_hash: Hash32 | None, now: int, on_progress: OnProgress
) -> VerifiedCheckpoint:
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
    last = verify_headers(headers, genesis.spec, engine, first, number, trusted_hash is None, now, on_progress)
    if last != head_hash:
        raise CheckpointError(f"block {number} of the chain is not its last block 0x{head_hash.hex()}")
    rules = store.meta(RULES_KEY)
    if rules:
        check_rules(rules, block_rules(genesis.spec), Header.decode(headers.raw(number)[1]))
    return VerifiedCheckpoint(number, head_hash)


def _has_seals(spec: ChainSpec) -> bool:
    """Whether every block has the seal of a validator. Blocks of proof of work and blocks after the merge have no
    seal.
    """
    return spec.engine is not EngineKind.ETHASH and spec.terminal_total_difficulty is None

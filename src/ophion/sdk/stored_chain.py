"""Opens the database of a data directory for reading, even while a node uses it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from weakref import finalize

from ophion.chain.block_environment import chain_rules
from ophion.chain.chain import Chain as StoredChain
from ophion.chainspec.dev_network import MNEMONIC_ACCOUNTS
from ophion.chainspec.genesis import Genesis
from ophion.dev.engine import DevEngine
from ophion.errors import GenesisError
from ophion.native.store import Store
from ophion.node.datadir import DataDirectory
from ophion.node.dev_genesis import possible_dev_geneses
from ophion.sdk.branch import Branch
from ophion.sdk.chain_config import ChainConfig
from ophion.sdk.embedded_chain import own_genesis
from ophion.sdk.errors import ChainError


def stored_branch(path: Path, genesis: Mapping[str, Any] | str | os.PathLike[str] | None, block: int | None) -> Branch:
    """Return a branch of the chain in a data directory. Raises `ChainError` if the genesis does not match."""
    directory = DataDirectory.beside_a_node(path)
    store = directory.store(read_only=True)
    try:
        chain, is_merged = _opened(store, [(own_genesis(genesis, ()), False)] if genesis else _dev_geneses(store))
        accounts = [one.address for one in MNEMONIC_ACCOUNTS[:10]]
        found = store.head()
        number = block if block is not None else 0 if found is None else found[1]
        header = chain.canonical(number) if number >= 0 else None
        if header is None:
            raise ChainError(f"There is no block {number} in {path}.")
        branch = Branch(chain, header, accounts, is_merged, is_writable=True)
    except BaseException:
        directory.close()
        raise
    finalize(branch, directory.close)
    return branch


def _dev_geneses(store: Store) -> Iterator[tuple[Genesis, bool]]:
    return possible_dev_geneses(store, lambda network, dev: ChainConfig(network=network, dev=dev))


def _opened(store: Store, candidates: Any) -> tuple[StoredChain, bool]:
    for genesis, is_merged in candidates:
        try:
            chain = StoredChain.open(store, genesis, DevEngine(genesis.spec, False, is_merged))
        except GenesisError:
            continue
        # relax the rules, because the branch on this chain is a development chain
        chain.rules, chain.is_relaxed = chain_rules(chain.spec, is_relaxed=True), True
        return chain, is_merged
    raise ChainError("The database has another genesis. Give that of its node with genesis=...")

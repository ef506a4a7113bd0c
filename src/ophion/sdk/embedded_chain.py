"""Configuration of an embedded node from the arguments of `Chain`."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.errors import ForkSourceError, GenesisError
from ophion.node.dev_genesis import preset_genesis
from ophion.node.dev_options import DevConfig, DevPreset
from ophion.node.network import NetworkConfig
from ophion.runtime.options import problems_of
from ophion.sdk.arguments import file_path
from ophion.sdk.chain_config import ChainConfig
from ophion.sdk.embedded_core import ChainClock
from ophion.sdk.embedded_node import EmbeddedNode
from ophion.sdk.errors import ChainError

DEFAULT_TIMESTAMP = 1_700_000_000
"""Timestamp of the genesis block, the same in every run."""

_FORKING = threading.Lock()
_ENGINES = {"ethash", "clique", "ibft2", "ibft", "qbft", "terminalTotalDifficulty"}


def embedded_node(
    *,
    path: Path | None,
    genesis: Mapping[str, Any] | str | os.PathLike[str] | None,
    chain_id: int | None,
    hardfork: str | None,
    accounts: int,
    balance: float,
    timestamp: int,
    interval: int,
    mnemonic: str | None,
    base_fee: int | None,
    gas_limit: int | None,
    fork: str | None,
    fork_block: int | None,
) -> EmbeddedNode:
    """Build a node for these arguments. Raises `ChainError` for invalid values."""
    overrides = () if chain_id is None else (("chainId", chain_id),)
    config = ChainConfig(
        network=NetworkConfig(network="dev", dev_fork=hardfork, dev_unlocked=True, overrides=overrides),
        dev=DevConfig(
            preset=DevPreset.ANVIL,
            mnemonic=mnemonic,
            account_count=accounts,
            balance=balance,
            timestamp=timestamp,
            base_fee=base_fee,
            gas_limit=gas_limit,
            fork_urls=() if fork is None else (fork,),
            fork_block=fork_block,
            # the state of a fixed block never changes, so a later run can use the cached state
            fork_cache=fork_block is not None,
        ),
    )
    if mnemonic is not None or hardfork is not None:
        problems = problems_of(config.node_config())
        if problems:
            raise ChainError("; ".join(problems))
    if fork is None:
        return _built(config, genesis, path, timestamp, interval)
    if path is not None or genesis is not None:
        raise ChainError("A fork is in memory and has the genesis of its source: leave out `path` and `genesis`.")
    # lazy import: few chains fork another chain
    from ophion.node.dev_fork import opened_fork

    with _FORKING:
        # open a new fork for each chain: closing a chain closes its fork, and a later fork may begin at a later block
        opened_fork.cache_clear()
        try:
            return _built(config, None, None, timestamp, interval)
        except ForkSourceError as error:
            raise ChainError(f"The chain cannot be forked: {error}") from error
        finally:
            opened_fork.cache_clear()


def _built(
    config: ChainConfig,
    genesis: Mapping[str, Any] | str | os.PathLike[str] | None,
    path: Path | None,
    timestamp: int,
    interval: int,
) -> EmbeddedNode:
    try:
        chosen = preset_genesis(config) if genesis is None else own_genesis(genesis, config.network.overrides)
    except GenesisError as error:
        raise ChainError(f"The genesis cannot be used: {error}") from error
    return EmbeddedNode(config, chosen, path, ChainClock(timestamp), interval)


def own_genesis(source: Mapping[str, Any] | str | os.PathLike[str], overrides: tuple[tuple[str, int], ...]) -> Genesis:
    """Parse a genesis document, given as an object or by its path."""
    if isinstance(source, Mapping):
        document: Any = dict(source)
    else:
        path = file_path("genesis", source)
        try:
            document = orjson.loads(path.read_bytes())
        except OSError as error:
            raise ChainError(f"{source}: {error.strerror}") from None
        except orjson.JSONDecodeError as error:
            raise ChainError(f"{source} is not JSON: {error}") from None
    config = document.get("config") if isinstance(document, dict) else None
    if isinstance(config, dict) and not _ENGINES & config.keys():
        # name a consensus protocol if the genesis file has none; any will do, because this chain makes all blocks
        # itself
        document = {**document, "config": {**config, "ethash": {}}}
    return parse_genesis(orjson.dumps(document).decode(), is_dev=True, overrides=overrides)

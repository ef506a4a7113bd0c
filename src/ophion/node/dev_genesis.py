"""Builds the genesis of a development network with a preset."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from ophion.chainspec.dev_network import CREATE2_DEPLOYER, dev_document, dev_genesis
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.chainspec.network_names import DEFAULT_DEV_FORK, DEV_FORKS
from ophion.errors import StorageError
from ophion.native.store import Store
from ophion.node.core_config import CoreConfig
from ophion.node.dev_options import DevConfig, DevPreset
from ophion.node.network import NetworkConfig
from ophion.primitives.header import Header
from ophion.runtime.clock import SystemClock

_CHAIN_ID = 31337
_GAS_LIMIT = 30_000_000
_BASE_FEE = 1_000_000_000


def preset_genesis(config: CoreConfig) -> Genesis:
    """Return the genesis of the development network, changed by the options of `DevConfig`."""
    dev, fork = config.dev, config.network.dev_fork or DEFAULT_DEV_FORK
    opened = None
    if dev.fork is not None:
        # lazy import: few nodes fork another chain
        from ophion.node.dev_fork import fork_name, opened_fork

        opened = opened_fork(dev.fork)
        fork = config.network.dev_fork or fork_name(opened)
    document = dev_document(fork)
    alloc = {account.address.hex(): {"balance": str(account.balance)} for account in config.accounts}
    contracts = {address: entry for address, entry in document["alloc"].items() if "code" in entry}
    document["alloc"] = alloc | contracts
    if dev.timestamp is not None:
        document["timestamp"] = hex(dev.timestamp)
    if dev.base_fee is not None and "baseFeePerGas" in document:
        document["baseFeePerGas"] = hex(dev.base_fee)
    if dev.gas_limit is not None:
        document["gasLimit"] = hex(dev.gas_limit)
    if dev.code_size_limit is not None:
        document["config"]["contractSizeLimit"] = dev.code_size_limit
    if dev.preset is None:
        return _parsed(document, config)
    document["alloc"] |= CREATE2_DEPLOYER
    document["config"]["chainId"] = _CHAIN_ID if opened is None else opened.point.chain_id
    if dev.code_size_limit is None:
        del document["config"]["contractSizeLimit"]
    del document["config"]["daoForkBlock"]
    if dev.timestamp is None:
        document["timestamp"] = hex(int(SystemClock().now()))
    if dev.gas_limit is None:
        document["gasLimit"] = hex(_GAS_LIMIT)
    if dev.base_fee is None and "baseFeePerGas" in document:
        document["baseFeePerGas"] = hex(_BASE_FEE)
    document.update(extraData="0x", difficulty="0x1", nonce="0x0")
    return _parsed(document, config)


def possible_dev_geneses(
    store: Store, config: Callable[[NetworkConfig, DevConfig], CoreConfig]
) -> Iterator[tuple[Genesis, bool]]:
    """Yield the genesis of each development network that may have created a database, newest forks first. The second
    value says whether the network has no proof of work. `config` returns the options of a node from their parts.
    """
    stored = store.canonical_hash(0)
    raw = None if stored is None else store.header(stored)
    if raw is None:
        raise StorageError("The database is empty.")
    timestamp = Header.decode(raw).timestamp
    for fork in reversed(DEV_FORKS):
        for preset in (DevPreset.ANVIL, DevPreset.HARDHAT):
            dev = DevConfig(preset=preset, timestamp=timestamp)
            yield preset_genesis(config(NetworkConfig(network="dev", dev_fork=fork), dev)), True
        yield dev_genesis(fork), False


def _parsed(document: dict[str, object], config: CoreConfig) -> Genesis:
    """Parse a genesis document with the overrides of the command line."""
    return parse_genesis(json.dumps(document), is_dev=True, overrides=config.network.dev_overrides)

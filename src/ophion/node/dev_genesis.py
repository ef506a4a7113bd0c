"""Builds the genesis of a development network with a preset."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from ophion.chainspec.dev_network import CREATE2_DEPLOYER, dev_document, dev_genesis
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.chainspec.genesis_fields import parse_json
from ophion.chainspec.network_names import DEFAULT_DEV_FORK, DEV_FORKS
from ophion.errors import GenesisError, StorageError
from ophion.native.store import Store
from ophion.node.core_config import CoreConfig
from ophion.node.dev_options import DevConfig, DevPreset
from ophion.node.network import NetworkConfig
from ophion.primitives.header import Header
from ophion.primitives.hexcodec import strip_prefix
from ophion.runtime.clock import SystemClock
from ophion.runtime.operator_files import content_of

_CHAIN_ID = 31337
_GAS_LIMIT = 30_000_000
_BASE_FEE = 1_000_000_000
_MAX_FILE_BYTES = 256 * 1024 * 1024
_ADDED_KEYS = ("coinbase", "mixHash")
_FILE_KEYS = ("timestamp", "gasLimit", "baseFeePerGas", "extraData", "nonce", *_ADDED_KEYS)
"""Keys of the genesis file that replace the keys of the preset. The difficulty is not one of these keys, because later
blocks have difficulty 0.
"""


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
        _add_file(document, dev)
        return _parsed(document, config)
    if dev.has_create2_deployer:
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
    _add_file(document, dev)
    return _parsed(document, config)


def _add_file(document: dict[str, Any], dev: DevConfig) -> None:
    """Add the accounts, the chain id and the header of a genesis file. Options of the command line have priority, and
    the forks of the development network stay.
    """
    if dev.init_file is None:
        return
    try:
        values, _ = parse_json(content_of(dev.init_file, _MAX_FILE_BYTES))
    except OSError as error:
        raise GenesisError(f"--init: {dev.init_file}: {error.strerror}") from error
    except (GenesisError, ValueError) as error:
        raise GenesisError(f"--init: {dev.init_file}: {error}") from error
    config, accounts = values.get("config"), values.get("alloc")
    if isinstance(config, dict) and "chainid" in config:
        document["config"]["chainId"] = config["chainid"]
    if isinstance(accounts, dict):
        document["alloc"] |= {strip_prefix(str(address)).lower(): account for address, account in accounts.items()}
    given = {"timestamp": dev.timestamp, "gasLimit": dev.gas_limit, "baseFeePerGas": dev.base_fee}
    for name in _FILE_KEYS:
        if given.get(name) is None and name.lower() in values and (name in document or name in _ADDED_KEYS):
            document[name] = values[name.lower()]


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

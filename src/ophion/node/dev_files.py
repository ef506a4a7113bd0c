"""`DevFiles`: the state file of a development node, and the file of keys for tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import orjson

from ophion.chainspec.dev_network import MNEMONIC
from ophion.dev.cheat_codes import DevNode
from ophion.dev.state_dump import BadStateFile, decode_dump, dump, load
from ophion.errors import ConfigError
from ophion.node.core_config import CoreConfig
from ophion.primitives.hexcodec import data
from ophion.runtime.operator_files import content_of, rewrite

log = logging.getLogger(__name__)

_MAX_STATE_BYTES = 1024 * 1024 * 1024


class DevFiles:
    """A service that loads and saves the state file of a development node, and writes a file of keys for tools."""

    name = "development files"

    def __init__(self, config: CoreConfig, node: DevNode, chain_id: int) -> None:
        self._config = config
        self._node = node
        self._chain_id = chain_id

    async def run(self, ready: Callable[[], None]) -> None:
        """Read the state file at start and write it at stop. An unreadable file stops the node."""
        dev = self._config.dev
        if dev.load_state is not None:
            await self._load(dev.load_state)
        if dev.config_out is not None:
            self._write_keys(dev.config_out)
        ready()
        try:
            await asyncio.Event().wait()
        finally:
            if dev.dump_state is not None:
                self._dump(dev.dump_state)

    async def _load(self, path: Path) -> None:
        try:
            await load(self._node, decode_dump(content_of(path, _MAX_STATE_BYTES)))
        except OSError as error:
            raise ConfigError(f"--load-state: {path}: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"--load-state: {path}: {error}") from error
        except BadStateFile as error:
            raise ConfigError(f"--load-state: {path}: {error.message}") from error

    def _write_keys(self, path: Path) -> None:
        try:
            rewrite(path, orjson.dumps(self._keys(), option=orjson.OPT_INDENT_2))
        except OSError as error:
            raise ConfigError(f"--config-out: {path}: {error.strerror}") from error

    def _dump(self, path: Path) -> None:
        """Write the state file. A process that is killed meanwhile leaves the previous file."""
        try:
            rewrite(path, orjson.dumps(dump(self._node)))
        except OSError as error:
            log.error("cannot write the state file path=%s reason=%s", path, error.strerror)

    def _keys(self) -> dict[str, object]:
        """Return accounts, keys and chain settings, in the format of Anvil's `--config-out` file."""
        config, header = self._config, self._node.chain.genesis.header
        return {
            "available_accounts": [data(account.address) for account in config.accounts],
            "private_keys": [data(account.private_key) for account in config.accounts],
            "wallet": {"mnemonic": config.dev.mnemonic or MNEMONIC, "derivation_path": config.dev.derivation_path},
            "base_fee": hex(header.base_fee_per_gas or 0),
            "gas_limit": hex(header.gas_limit),
            "genesis_timestamp": hex(header.timestamp),
            "chain_id": self._chain_id,
        }

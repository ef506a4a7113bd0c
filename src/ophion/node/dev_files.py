"""`DevFiles`: the state file of a development node, and the file of keys for tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from ophion.chainspec.dev_network import MNEMONIC
from ophion.dev.cheat_codes import DevNode
from ophion.dev.state_dump import BadStateFile, decode_dump, dump, load
from ophion.errors import ConfigError
from ophion.node.banner import DevSummary, ForkSummary
from ophion.node.config import NodeConfig
from ophion.node.core_config import CoreConfig
from ophion.primitives.hexcodec import data
from ophion.runtime.operator_files import content_of, rewrite
from ophion.runtime.options import hosts_of

if TYPE_CHECKING:
    from ophion.node.build import NodeCore

log = logging.getLogger(__name__)

_MAX_STATE_BYTES = 1024 * 1024 * 1024


def dev_summary(config: NodeConfig, core: NodeCore, port: int) -> DevSummary:
    """Return the values that the startup text of a node with the preset of Anvil shows."""
    return DevSummary(
        addresses=[_address(host, port) for host in hosts_of(config.http.host)],
        chain_id=core.chain.spec.chain_id,
        accounts=config.accounts,
        mnemonic=config.dev.mnemonic or MNEMONIC,
        derivation_path=config.dev.derivation_path,
        genesis=core.chain.genesis.header,
        fork=None if core.dev is None else _fork_summary(core.dev),
    )


def _fork_summary(node: DevNode) -> ForkSummary | None:
    if node.fork is None:
        return None
    point = node.fork.point
    return ForkSummary(node.fork.settings.url, point.number, point.header.hash, point.chain_id)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
        if dev.fork_transaction is not None:
            await self._replay(dev.fork_transaction)
        if dev.load_state is not None:
            await self._load(dev.load_state)
        if dev.config_out is not None:
            self._write_keys(dev.config_out)
        ready()
        try:
            if dev.dump_state is not None and dev.state_interval_s is not None:
                while True:
                    await asyncio.sleep(dev.state_interval_s)
                    self._dump(dev.dump_state)
            await asyncio.Event().wait()
        finally:
            if dev.dump_state is not None:
                self._dump(dev.dump_state)

    async def _replay(self, transaction: bytes) -> None:
        # lazy import: few nodes repeat transactions of another chain
        from ophion.dev.fork.replay import replay

        await replay(self._node, transaction)

    async def _load(self, path: Path) -> None:
        # `--state` sets one file, both to load from and to dump to
        option = "--state" if path == self._config.dev.dump_state else "--load-state"
        try:
            await load(self._node, decode_dump(content_of(path, _MAX_STATE_BYTES)))
        except OSError as error:
            raise ConfigError(f"{option}: {path}: {error.strerror}") from error
        except ValueError as error:
            raise ConfigError(f"{option}: {path}: {error}") from error
        except BadStateFile as error:
            raise ConfigError(f"{option}: {path}: {error.message}") from error

    def _write_keys(self, path: Path) -> None:
        try:
            rewrite(path, orjson.dumps(self._keys()))
        except OSError as error:
            raise ConfigError(f"--config-out: {path}: {error.strerror}") from error

    def _dump(self, path: Path) -> None:
        """Write the state file. If the process is killed during the write, the previous file stays."""
        try:
            rewrite(path, orjson.dumps(dump(self._node)))
        except OSError as error:
            log.error("cannot write the state file path=%s reason=%s", path, error.strerror)

    def _keys(self) -> dict[str, object]:
        """Return accounts, keys and chain settings, in the format of Anvil's `--config-out` file."""
        config, header = self._config, self._node.chain.genesis.header
        base_fee = header.base_fee_per_gas or 0
        limit = config.dev.gas_limit
        return {
            "available_accounts": [data(account.address) for account in config.accounts],
            "private_keys": [data(account.private_key) for account in config.accounts],
            "wallet": {"mnemonic": config.dev.mnemonic or MNEMONIC, "derivation_path": config.dev.derivation_path},
            "base_fee": str(base_fee),
            "gas_price": str(base_fee - base_fee // 8 + (config.dev.suggested_tip or 0)),
            "gas_limit": None if limit is None else str(limit),
            "genesis_timestamp": str(header.timestamp),
            "chain_id": self._chain_id,
        }

"""Prepares a node to run: checks options, opens the directory, imports modules.

    options ─> checks, genesis, ports ─> data directory and lock ─┬─> key, database (a thread) ─┬─> run (node.py)
                                                                  └─> modules ──────────────────┘

Problems with options are reported before anything is opened. A thread then opens key and database and waits for the
disk. Meanwhile the main thread imports modules, which takes most of the start time.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ophion.chainspec.genesis import Genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import ConfigError, OphionError
from ophion.native.crypto import PrivateKey
from ophion.native.exceptions import NativeError
from ophion.node.config import NodeConfig
from ophion.node.datadir import DataDirectory, refuse_in_use
from ophion.node.foreign_data import refuse_foreign_data
from ophion.node.network import load_genesis
from ophion.node.port_check import PortsTaken, check_ports
from ophion.peers.options import SyncMode
from ophion.primitives.types import ZERO_HASH
from ophion.runtime import logs
from ophion.runtime.event_loop import load_without_tls
from ophion.runtime.interrupts import held_back, stop_signals
from ophion.runtime.options import LoadedConfig, problems_of
from ophion.runtime.temporary_directory import temporary_directory
from ophion.version import client_version

if TYPE_CHECKING:
    from ophion.consensus.bft.signatures import DigestSigner
    from ophion.node.node import Attach

_EXIT_SIGTERM = 128 + signal.SIGTERM

log = logging.getLogger(__name__)


def launch(loaded: LoadedConfig[NodeConfig], attach: Attach | None = None) -> int:
    """Run a node until a signal stops it. Returns the exit code. `attach` adds a service to a development node."""
    config = loaded.config
    problems = problems_of(config)
    if problems:
        raise ConfigError(problems)
    _interrupt_by_signals()
    _configure_logs(config)
    log.info("Setting logging level to %s", config.logs.level.name)
    log.info("Starting %s", client_version())
    with _last_words(config):
        stopped_by = _launch(loaded, attach)
    if stopped_by == signal.SIGTERM and config.process.besu_conventions:
        return _EXIT_SIGTERM
    return 0


def _launch(loaded: LoadedConfig[NodeConfig], attach: Attach | None) -> int | None:
    config = loaded.config
    if not _is_temporary(loaded):
        # check for data of another client before the ports, because that client may still run and use the ports
        refuse_foreign_data(config.data.data_path)
    genesis = _checked_genesis(config)
    _check_ports(loaded)
    holds_program = config.process.besu_home == config.data.data_path
    with _data_path(loaded) as data_path, DataDirectory.open(data_path, holds_program) as directory:
        config = replace(config, data=replace(config.data, data_path=data_path))
        if config.peers.sync_mode is SyncMode.CHECKPOINT and config.peers.sync_checkpoint is not None:
            # lazy import: few nodes start from a checkpoint
            from ophion.node.checkpoint.installation import install_checkpoint

            install_checkpoint(directory, config.peers.sync_checkpoint, genesis, config.peers.sync_checkpoint_hash)
        if config.peers.sync_mode is SyncMode.SNAP and (stopped_by := _snap(config, directory, genesis)) is not None:
            return stopped_by
        with held_back(), ThreadPoolExecutor(1, "disk") as disk:
            opened = disk.submit(_open, config, directory)
            run = _loaded_node(config)
            key, is_new, validator_key = opened.result()
        if is_new:
            because = "" if config.data.node_private_key_file is None else ", because that file was missing"
            log.info(
                "Generated new key 0x%s and stored it to %s%s", key.public_key.hex(), config.data.key_file, because
            )
        else:
            log.info("Loaded key 0x%s from %s", key.public_key.hex(), config.data.key_file)
        if validator_key is not None:
            log.info("Loaded validator key address=0x%s", validator_key.address.hex())
        return run(config, genesis, directory, key, validator_key, attach)


def _snap(config: NodeConfig, directory: DataDirectory, genesis: Genesis) -> int | None:
    """Fetch the chain from peers by snap synchronisation. Returns the number of the signal that stopped the
    synchronisation, or None.
    """
    # lazy import: few nodes start by snap synchronisation
    from ophion.node.snap_sync.installation import SnapSyncStopped, install_by_snap

    key, _ = directory.key(config.data)
    try:
        install_by_snap(directory, config, genesis, key)
    except SnapSyncStopped as stopped:
        return stopped.number
    finally:
        _interrupt_by_signals()
    return None


def _interrupt_by_signals() -> None:
    """Give each stop signal the effect of Ctrl-C, until the services run."""
    for number in stop_signals():
        signal.signal(number, _interrupt)


@contextmanager
def _last_words(config: NodeConfig) -> Iterator[None]:
    """Write the error that ends a node to the log file. Standard error shows the same error."""
    try:
        yield
    except Exception as error:
        if config.logs.file is not None or config.logs.config_file is not None:
            why = str(error) if isinstance(error, OphionError | NativeError) else repr(error)
            log.critical("node stopped by an error reason=%s", " ".join(why.splitlines()))
        raise


def _checked_genesis(config: NodeConfig) -> Genesis:
    genesis = load_genesis(config.network) if not config.dev.is_used else _preset_genesis(config)
    for warning in genesis.warnings:
        log.warning("%s", warning)
    engine_for(genesis.spec).check_genesis(genesis.header(ZERO_HASH))
    if config.privacy.enabled:
        from ophion.node.privacy import check_forks, refused_markers

        check_forks(genesis.spec)
        if (refused := refused_markers(genesis.spec, config)) is not None:
            log.warning("%s", refused)
    return genesis


def _preset_genesis(config: NodeConfig) -> Genesis:
    # lazy import: only development nodes with a preset need this module
    from ophion.node.dev_genesis import preset_genesis

    return preset_genesis(config)


def _check_ports(loaded: LoadedConfig[NodeConfig]) -> None:
    try:
        check_ports(loaded.config)
    except PortsTaken:
        if not _is_temporary(loaded):
            # the ports may be in use because this node runs already: report this instead of the ports
            refuse_in_use(loaded.config.data.data_path)
        raise


def _open(config: NodeConfig, directory: DataDirectory) -> tuple[PrivateKey, bool, DigestSigner | None]:
    """Open keys and database. Returns the node's key, whether the key is new, and the validator key, if any."""
    key, is_new = directory.key(config.data)
    directory.store(config.storage)
    return key, is_new, config.security_module.open() or directory.validator_key(config.data)


def _loaded_node(
    config: NodeConfig,
) -> Callable[[NodeConfig, Genesis, DataDirectory, PrivateKey, DigestSigner | None, Attach | None], int | None]:
    if not config.speaks_tls:
        load_without_tls()
    from ophion.node.node import run_node

    return run_node


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _configure_logs(config: NodeConfig) -> None:
    chosen = config.logs
    if chosen.config_file is not None:
        logs.configure_from_file(chosen.config_file)
        return
    target = problem = None
    if chosen.file is not None:
        from ophion.runtime.log_file import LogFile

        try:
            target = LogFile(chosen.file, chosen.file_max_size << 20, chosen.files_kept)
        except ConfigError as error:
            if not chosen.keeps_console:
                raise
            problem = error
    also = sys.stdout if chosen.keeps_console and target is not None else None
    logs.configure(chosen.level, chosen.format, chosen.is_coloured, target, also)
    if problem is not None:
        log.warning("%s", problem)


@contextmanager
def _data_path(loaded: LoadedConfig[NodeConfig]) -> Iterator[Path]:
    """Yield the data path: the configured path, or a temporary directory."""
    if not _is_temporary(loaded):
        yield loaded.config.data.data_path
        return
    with temporary_directory("ophion-") as path:
        yield path


def _is_temporary(loaded: LoadedConfig[NodeConfig]) -> bool:
    return loaded.config.storage.temporary and not loaded.is_given("--data-path")

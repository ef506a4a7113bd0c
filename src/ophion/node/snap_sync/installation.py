"""Makes a chain that was fetched from peers the database of a node.

<data-path>/snap/database/     blocks and state while they are fetched
<data-path>/snap/network/      the genesis block, for the connections
<data-path>/database/          exists once the state of the pivot is whole and on disk
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

import uvloop

from ophion.chain.chain import FIRST_STATE_KEY, Chain
from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.genesis import Genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import GenesisError, SnapSyncError
from ophion.native.crypto import PrivateKey
from ophion.native.store import Store, open_store
from ophion.node.config import NodeConfig
from ophion.node.database_install import install_database
from ophion.node.datadir import DATA_FILE, DataDirectory
from ophion.node.snap_sync.headers import HASH_OPTION, ValidatorsUnknown
from ophion.node.snap_sync.network import build_snap_network
from ophion.node.snap_sync.synchroniser import SnapSynchroniser
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.runtime.interrupts import stop_signals
from ophion.runtime.supervisor import Supervisor
from ophion.runtime.thread_pools import ThreadLanes

log = logging.getLogger(__name__)

_SWITCH_INTERVAL_S: Final = 0.001


class SnapSyncStopped(Exception):
    """Raised when a signal stops the synchronisation."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def install_by_snap(directory: DataDirectory, config: NodeConfig, genesis: Genesis, key: PrivateKey) -> None:
    """Fetch the chain from peers and install it, unless the data path already has a chain.

    Installs nothing if no peer has a long chain, or if the blocks have no seals and no block hash is trusted. Raises
    `SnapSyncError`, and `SnapSyncStopped` after a signal. After a signal or `ValidatorsUnknown`, the next start
    continues with the fetched blocks and states, unless they belong to another chain.
    """
    staging = directory.path / "snap"
    if (directory.database / DATA_FILE).exists():
        shutil.rmtree(staging, ignore_errors=True)
        log.info("snap synchronisation not used reason=data path has a chain")
        return
    if config.peers.sync_checkpoint_hash is None and not _has_seals(genesis):
        name = engine_for(genesis.spec).name
        log.warning(
            "snap synchronisation not used: blocks of %s have no validators' seals. Every block is executed."
            " To use it, give the hash of a recent block with %s.",
            name,
            HASH_OPTION,
        )
        return
    database = staging / "database"
    _remove_foreign(database, genesis)
    database.mkdir(parents=True, exist_ok=True)
    try:
        is_whole = _fetch(database, config, genesis, key, directory.path)
    except ValidatorsUnknown:
        # keep the fetched blocks, whose seals are verified: a start with --sync-checkpoint-hash continues after these
        # blocks
        raise
    except SnapSyncError:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    if is_whole:
        install_database(database, directory)
    shutil.rmtree(staging, ignore_errors=True)


def _remove_foreign(database: Path, genesis: Genesis) -> None:
    """Remove the blocks and states that an earlier start has fetched for another genesis file."""
    if not (database / DATA_FILE).exists():
        return
    with closing(open_store(database)) as store:
        try:
            Chain.open(store, genesis, engine_for(genesis.spec))
            return
        except GenesisError as error:
            log.warning("removing the blocks and states of an unfinished snap synchronisation reason=%s", error)
    shutil.rmtree(database)


def _fetch(database: Path, config: NodeConfig, genesis: Genesis, key: PrivateKey, data_path: Path) -> bool:
    network = database.parent / "network"
    shutil.rmtree(network, ignore_errors=True)
    network.mkdir()
    with closing(open_store(database)) as store:
        if store.meta(FIRST_STATE_KEY) is not None:
            return True
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        with (
            closing(open_store(network, durable=False)) as bare,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            return runner.run(_synchronise(store, bare, config, genesis, key, data_path))


async def _synchronise(
    store: Store, bare: Store, config: NodeConfig, genesis: Genesis, key: PrivateKey, data_path: Path
) -> bool:
    clock, entropy, lanes = SystemClock(), SystemEntropy(), ThreadLanes()
    loop, received = asyncio.get_running_loop(), list[int]()
    try:
        # share one engine between the network and the new chain, because the engine caches decoded headers
        engine = engine_for(genesis.spec)
        network = build_snap_network(config, genesis, engine, bare, key, data_path, lanes, clock, entropy)
        chain = Chain.open(store, genesis, engine)
        trusted = config.peers.sync_checkpoint_hash
        synchroniser = SnapSynchroniser(chain, network.usable, network.snap, lanes, clock, trusted)
        supervisor = Supervisor(network.services)
        serving = asyncio.create_task(supervisor.run(), name="network")
        fetching = asyncio.create_task(synchroniser.run(), name="snap synchronisation")

        def stop(number: int) -> None:
            received.append(number)
            fetching.cancel()

        for number in stop_signals():
            loop.add_signal_handler(number, stop, number)
        try:
            await asyncio.wait({serving, fetching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            fetching.cancel()
            supervisor.stop()
            await asyncio.wait({serving, fetching})
            for number in stop_signals():
                loop.remove_signal_handler(number)
        if received:
            raise SnapSyncStopped(received[0])
        serving.result()
        return fetching.result()
    finally:
        lanes.close()


def _has_seals(genesis: Genesis) -> bool:
    """Whether every block has the seal of a validator or signer. Blocks of proof of work and blocks after the merge
    have no seal.
    """
    spec = genesis.spec
    return spec.engine is not EngineKind.ETHASH and spec.terminal_total_difficulty is None

"""Runs a node from start to stop: chain, services, signals.

    directory, key, database (launch.py) ─> chain, pool, producer (build.py) ─> services ─> run
                            stop <─ SIGINT, SIGTERM, SIGHUP, a service that failed

A node stops in reverse order: services, worker threads (after the commit in progress), database, lock.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import uvloop

from ophion.chainspec.genesis import Genesis
from ophion.native.crypto import PrivateKey
from ophion.node.build import NodeCore, build_core
from ophion.node.config import NodeConfig
from ophion.node.datadir import DataDirectory
from ophion.node.dev_options import DevPreset
from ophion.node.pid_file import remove_pid_file, write_pid_file
from ophion.node.ports_file import remove_besu_files, remove_ports, write_besu_files, write_ports
from ophion.node.services import PublicInterface, build_interface
from ophion.permissions.permissions import Permissions
from ophion.runtime.clock import Clock, Entropy, SystemClock, SystemEntropy
from ophion.runtime.garbage_collection import settle_down
from ophion.runtime.interrupts import stop_signals
from ophion.runtime.logs import LogLevel
from ophion.runtime.supervisor import Service, Supervisor
from ophion.runtime.thread_pools import Lanes, ThreadLanes

if TYPE_CHECKING:
    from ophion.chain.pruning import StatePruner
    from ophion.consensus.bft.signatures import DigestSigner
    from ophion.enclave.interface import Enclave
    from ophion.native.store import Store
    from ophion.node.peering import PeerNetwork
    from ophion.privacy.service import Privacy

_SWITCH_INTERVAL_S = 0.001

log = logging.getLogger(__name__)


Attach: TypeAlias = Callable[[NodeConfig, NodeCore, Lanes], Service | None]
"""Creates an additional service of a development node, such as the execution log on its terminal."""


def run_node(
    config: NodeConfig,
    genesis: Genesis,
    directory: DataDirectory,
    key: PrivateKey,
    validator_key: DigestSigner | None = None,
    attach: Attach | None = None,
) -> int | None:
    """Run a node in an open directory until a signal stops it. Returns the signal's number.

    `validator_key` signs blocks and consensus messages; if None, the node's key signs.
    """
    # worker threads run Python too, and with the default switch interval the event loop would wait 5 ms for each thread
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(config, genesis, directory, key, validator_key, attach))


async def _serve(
    config: NodeConfig,
    genesis: Genesis,
    directory: DataDirectory,
    key: PrivateKey,
    validator_key: DigestSigner | None,
    attach: Attach | None,
) -> int | None:
    permissions = _permissions(config, genesis, directory.path, key)
    clock, entropy = SystemClock(), SystemEntropy()
    lanes = ThreadLanes()
    store = directory.store(config.storage)
    try:
        signer = key if validator_key is None else validator_key
        core = build_core(config, genesis, store, signer, lanes, clock, entropy, directory.path, permissions)
        head = core.chain.head
        log.info("chain head number=%d hash=0x%s", head.number, head.hash.hex())
        restored = core.pool.restore()
        if restored:
            log.info("local transactions restored count=%d", restored)
        # validators and signers produce blocks even without --miner-enabled
        if config.miner.enabled or core.proposals is not None:
            core.mining.start()
        enclave = _enclave(config, store, directory.path, lanes, entropy)
        network = _network(
            config, core, directory.path, key, lanes, clock, entropy, permissions, enclave, validator_key
        )
        privacy = None if enclave is None else _privacy(config, core, enclave, lanes, entropy)
        states_kept = config.storage.states_kept
        pruner = None if states_kept is None else _pruner(core, lanes, clock, states_kept)
        pruning = None if pruner is None else pruner.rounds
        interface = build_interface(
            config, genesis, core, key, lanes, clock, entropy, network, directory.path, enclave, privacy, pruning
        )
        attached = None if attach is None or core.dev is None else attach(config, core, lanes)
        with_peers = () if network is None else network.services
        upkeep = () if pruner is None else (pruner,)
        with_enclave = () if enclave is None or privacy is None else (enclave, privacy.executor)
        supervisor = Supervisor(
            [
                core.pool,
                core.mining,
                *upkeep,
                *_dev_files(config, core),
                *(() if attached is None else (attached,)),
                *permissions.services(lanes),
                *with_enclave,
                *with_peers,
                *interface.services,
            ]
        )
        received: list[int] = []

        def stop(number: int) -> None:
            received.append(number)
            supervisor.stop()

        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, stop, number)
        await supervisor.run(lambda: _started(config, genesis, core, interface, directory.path))
        log.info("Stopped.")
        return received[0] if received else None
    finally:
        remove_ports(directory.path)
        remove_pid_file(config.process.pid_path)
        if config.process.besu_conventions:
            remove_besu_files(directory.path)
        lanes.close()
        if not config.storage.durable:
            store.sync()


def _dev_files(config: NodeConfig, core: NodeCore) -> tuple[Service, ...]:
    dev = config.dev
    files = (dev.load_state, dev.dump_state, dev.config_out, dev.fork_transaction)
    if core.dev is None or not any(files):
        return ()
    from ophion.node.dev_files import DevFiles

    return (DevFiles(config, core.dev, core.chain.spec.chain_id),)


def _pruner(core: NodeCore, lanes: Lanes, clock: Clock, states_kept: int) -> StatePruner:
    from ophion.chain.pruning import StatePruner
    from ophion.node.privacy import check_no_private_states

    check_no_private_states(core.chain.store)
    return StatePruner(core.chain, lanes, clock, states_kept)


def _permissions(config: NodeConfig, genesis: Genesis, data_path: Path, key: PrivateKey) -> Permissions:
    if not config.permissions.is_used:
        return Permissions(own_id=key.public_key)
    from ophion.node.peering import open_permissions

    return open_permissions(config, genesis.spec, data_path, key)


def _enclave(config: NodeConfig, store: Store, data_path: Path, lanes: Lanes, entropy: Entropy) -> Enclave | None:
    if not config.privacy.enabled:
        return None
    from ophion.node.enclave import build_enclave
    from ophion.node.privacy import check_states

    check_states(store)
    return build_enclave(config, store, data_path, lanes, entropy)


def _privacy(config: NodeConfig, core: NodeCore, enclave: Enclave, lanes: Lanes, entropy: Entropy) -> Privacy:
    from ophion.node.privacy import build_privacy

    return build_privacy(config, core, enclave, lanes, entropy)


def _network(
    config: NodeConfig,
    core: NodeCore,
    data_path: Path,
    key: PrivateKey,
    lanes: Lanes,
    clock: Clock,
    entropy: Entropy,
    permissions: Permissions,
    enclave: Enclave | None,
    validator_key: DigestSigner | None,
) -> PeerNetwork | None:
    if not config.peers.enabled:
        return None
    # lazy import: a node without peers does not need this module, and starts faster
    from ophion.node.peering import build_network

    rules = permissions.node_rules
    return build_network(config, core, key, data_path, lanes, clock, entropy, rules, enclave, validator_key)


async def _started(
    config: NodeConfig, genesis: Genesis, core: NodeCore, interface: PublicInterface, data_path: Path
) -> None:
    await interface.open()
    write_ports(data_path, interface.ports())
    if config.process.besu_conventions:
        global_ip = config.peers.host if interface.enode is None else interface.enode.ip
        write_besu_files(data_path, interface.ports(), global_ip, config.peers.interface)
    write_pid_file(config.process.pid_path)
    if interface.enode is not None:
        log.info("Enode URL %s", interface.enode)
    log.info("Ethereum main loop is up.")
    if config.dev.preset is DevPreset.ANVIL and config.logs.level is not LogLevel.OFF:
        from ophion.node.banner import anvil_banner
        from ophion.node.dev_files import dev_summary

        sys.stdout.write(anvil_banner(dev_summary(config, core, interface.ports()["json-rpc"])))
        sys.stdout.flush()
    elif sys.stdout.isatty():
        from ophion.node.banner import StartupSummary, banner

        summary = StartupSummary(
            endpoints=interface.urls(),
            network=config.network.name or str(config.network.genesis_file),
            chain_id=genesis.spec.chain_id,
            accounts=config.accounts,
            is_mining=core.mining.is_mining,
            head=core.queries.head_number,
            data_path=data_path,
            is_temporary=config.storage.temporary,
        )
        sys.stdout.write("\n" + banner(summary) + "\n")
        sys.stdout.flush()
    settle_down()

"""The targets of attacks: nodes with all interfaces, with tokens, with TLS, with peers, and a gateway in front of a
node.

The first attack on a target starts it with default options. An honest client (watch.py) uses the target all the time.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import bcrypt

from ophion.cli.rlp import ExtraDataType, extra_data
from ophion.enclave.keyfile import KeyPair, write_pair
from ophion.gateway.backends import BackendNetwork, BackendNode, ServiceKind
from ophion.gateway.backends import ServiceAddress as Upstream
from ophion.native.crypto import PrivateKey
from ophion.primitives.enode import Enode
from ophion.runtime.clock import SystemEntropy
from ophion.testing.network import TestNetwork
from ophion.testing.node_process import COMMAND, MINING, NodeProcess, environment
from ophion.testing.ports import free_ports
from ophion.testing.private_transactions import ENCLAVE_SECRETS
from tests.abuse.attacks_tokens import PASSWORD, USER, token
from tests.abuse.metered_node import Meter, meter_file, metered_command
from tests.abuse.target import Place, Target
from tests.abuse.watch import Watcher
from tests.conftest import ROOT
from tests.unit.rpc.tls.test_certificates import identity, pem_file

HOST = "127.0.0.1"
SECRET = b"a shared secret of the abuse tests"
DAY_S = 86_400
PROXY_LIMIT_S = 60.0
SERVICES = (
    "--rpc-http-api=ETH,NET,WEB3,TRACE",
    "--rpc-ws-enabled",
    "--rpc-ws-port=0",
    "--graphql-http-enabled",
    "--graphql-http-port=0",
    "--metrics-enabled",
    "--metrics-port=0",
    "--durable-commits=false",
)
VALIDATOR = ROOT / "examples" / "ibft2"


class Process(Protocol):
    """A process that writes a log file."""

    @property
    def pid(self) -> int: ...

    @property
    def is_running(self) -> bool: ...

    def output(self) -> str: ...


@dataclass
class Scene:
    """A running target of attacks: a node, a gateway or a network."""

    target: Target
    watcher: Watcher
    pid: int | None
    """Process whose memory is measured."""
    processes: tuple[Process, ...] = ()
    """Processes whose logs are checked."""
    read: dict[int, int] = field(default_factory=dict)

    def trouble(self) -> str | None:
        """Return a problem since the last call: a process that stopped, or a log with a traceback."""
        for process in self.processes:
            log = process.output()
            new = log[self.read.get(process.pid, 0) :]
            self.read[process.pid] = len(log)
            at = new.find("Traceback")
            if at >= 0 or not process.is_running:
                excerpt = new[-3000:] if at < 0 else new[max(0, at - 1000) : at + 4000]
                return f"the {'node is gone' if at < 0 else 'log has a traceback'}:\n{excerpt}"
        return None


@contextlib.contextmanager
def watched(target: Target, pid: int | None, *processes: Process, header: bytes = b"") -> Iterator[Scene]:
    with contextlib.closing(Watcher(target.http.url, pid, header)) as watcher:
        yield Scene(target, watcher, pid, processes)


def target_of(node: NodeProcess, scale: float, secret: bytes = b"", is_encrypted: bool = False) -> Target:
    """Return the addresses of a node's services as a target of attacks."""
    graphql, metrics = node.ports.get("graphql-http"), node.ports.get("metrics")
    return Target(
        Place(HOST, node.ports["json-rpc"], is_encrypted=is_encrypted),
        Place(HOST, node.ports["ws-rpc"], is_encrypted=is_encrypted),
        None if graphql is None else Place(HOST, graphql),
        None if metrics is None else Place(HOST, metrics),
        secret,
        scale=scale,
    )


@contextlib.contextmanager
def open_node(folder: Path, scale: float, *options: str) -> Iterator[Scene]:
    """Start a node with all interfaces and without authentication."""
    with (
        NodeProcess(folder / "open", *MINING, *SERVICES, *options) as node,
        watched(target_of(node, scale), node.pid, node) as scene,
    ):
        yield scene


@contextlib.contextmanager
def guarded_node(folder: Path, scale: float, *options: str) -> Iterator[Scene]:
    """Start a node that requires tokens. The honest client has a token."""
    secret, users = folder / "secret", folder / "users.toml"
    secret.write_bytes(SECRET)
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(10)).decode()
    users.write_text(f'[Users.{USER}]\npassword = "{hashed}"\npermissions = ["*:*"]\n')
    asking = (
        "--network=dev",
        "--rpc-http-authentication-enabled",
        f"--rpc-http-authentication-jwt-public-key-file={secret}",
        "--rpc-http-authentication-jwt-algorithm=HS256",
        "--rpc-ws-enabled",
        "--rpc-ws-port=0",
        "--rpc-ws-authentication-enabled",
        f"--rpc-ws-authentication-credentials-file={users}",
    )
    with NodeProcess(folder / "guarded", *asking, *options) as node:
        target = target_of(node, scale, SECRET)
        with watched(target, node.pid, node, header=token(target, time.time() + DAY_S)) as scene:
            yield scene


@contextlib.contextmanager
def encrypted_node(folder: Path, scale: float, *options: str) -> Iterator[Scene]:
    """Start a node with TLS on both services. The honest client uses TLS too."""
    store = pem_file(folder / "node.pem", *identity("node"))
    tls = (
        "--rpc-http-tls-enabled",
        f"--rpc-http-tls-keystore-file={store}",
        "--rpc-ws-ssl-enabled",
        f"--rpc-ws-ssl-keystore-file={store}",
    )
    with (
        NodeProcess(folder / "encrypted", *MINING, *SERVICES, *tls, *options) as node,
        watched(target_of(node, scale, is_encrypted=True), node.pid, node) as scene,
    ):
        yield scene


class Proxy:
    """The gateway of a quickstart network, as a process."""

    def __init__(self, folder: Path, node: NodeProcess) -> None:
        kinds = {ServiceKind.JSON_RPC: "json-rpc", ServiceKind.WEBSOCKET: "ws-rpc", ServiceKind.GRAPHQL: "graphql-http"}
        places = {kind: Upstream(HOST, node.ports[name]) for kind, name in kinds.items()}
        BackendNetwork("abuse", None, (BackendNode("node", "rpc", places),)).write(folder / "site.json")
        self._log = folder / "proxy.log"
        (self.port,) = free_ports(1)
        command = [*COMMAND, "quickstart", "proxy", f"--site={folder / 'site.json'}", f"--port={self.port}"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, env=environment(), stdout=log, stderr=subprocess.STDOUT)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def wait(self) -> None:
        """Wait until the gateway listens."""
        end = time.monotonic() + PROXY_LIMIT_S
        while "listening" not in self.output():
            if not self.is_running or time.monotonic() > end:
                raise AssertionError(f"the proxy did not start:\n{self.output()}")
            time.sleep(0.01)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PROXY_LIMIT_S)


@contextlib.contextmanager
def gateway(folder: Path, scale: float, *options: str) -> Iterator[Scene]:
    """Start the gateway of a quickstart network in front of a node. The gateway is the target.

    The node does not get `options`: with fewer connection slots than the gateway has connections, the node would close
    connections in use.
    """
    with (
        NodeProcess(folder / "behind", *MINING, *SERVICES) as node,
        contextlib.closing(Proxy(folder, node)) as proxy,
    ):
        proxy.wait()
        target = Target(Place(HOST, proxy.port, b"/jsonrpc"), Place(HOST, proxy.port, b"/jsonws"), scale=scale)
        with watched(target, proxy.pid, proxy, node) as scene:
            yield scene


@contextlib.contextmanager
def qbft_validator(folder: Path, scale: float, *options: str) -> Iterator[Scene]:
    """Start a QBFT validator with a peer port."""
    genesis = json.loads((VALIDATOR / "genesis.json").read_text())
    genesis["config"]["qbft"] = genesis["config"].pop("ibft2")
    key = PrivateKey(bytes.fromhex((VALIDATOR / "key.priv").read_text().strip().removeprefix("0x")))
    genesis["extraData"] = "0x" + extra_data([key.address], ExtraDataType.QBFT_EXTRA_DATA).hex()
    (folder / "genesis.json").write_text(json.dumps(genesis))
    with validator(folder, scale, f"--genesis-file={folder / 'genesis.json'}", *options) as scene:
        yield scene


@contextlib.contextmanager
def validator(folder: Path, scale: float, *options: str) -> Iterator[Scene]:
    """Start a validator with a peer port, by default of IBFT 2.0. It has an enclave, so it speaks priv/1."""
    if not any(option.startswith("--genesis-file=") for option in options):
        options = (f"--genesis-file={VALIDATOR / 'genesis.json'}", *options)
    peers = (
        f"--node-private-key-file={VALIDATOR / 'key.priv'}",
        "--privacy-enabled",
        f"--privacy-marker-transaction-signing-key-file={VALIDATOR / 'key.priv'}",
        "--p2p-enabled",
        f"--p2p-interface={HOST}",
        "--p2p-port=0",
        "--bootnodes",
    )
    with (
        meter_file() as meter,
        NodeProcess(folder / "validator", *peers, *SERVICES, *options, launcher=metered_command(meter)) as node,
    ):
        target = replace(target_of(node, scale), pid=node.pid, meter=Meter(meter))
        target.enode = Enode.parse(node.rpc("net_enode"))
        with watched(target, node.pid, node) as scene:
            yield scene


def network_of(engine: str) -> Callable[..., contextlib.AbstractContextManager[Scene]]:
    """Return a target of four validators that know each other."""

    @contextlib.contextmanager
    def opened(folder: Path, scale: float, *options: str) -> Iterator[Scene]:
        """Start a network of validators. The memory of the first validator is measured."""
        with TestNetwork(folder, engine, options=("--rpc-ws-enabled", "--rpc-ws-port=0", *options)) as network:
            network.wait(lambda: min(network.heights()) >= 3, PROXY_LIMIT_S, "the third block")
            target = target_of(network.nodes[0], scale)
            target.enodes = tuple(Enode.parse(node.rpc("net_enode")) for node in network.nodes)
            target.network = engine
            with watched(target, network.nodes[0].pid, *network.nodes) as scene:
                yield scene

    return opened


Opening = Callable[..., contextlib.AbstractContextManager[Scene]]


@contextlib.contextmanager
def private_node(folder: Path, scale: float, *options: str) -> Iterator[Scene]:
    """Start a member of private transactions whose enclave port is open. Markers cost nothing."""
    asking = (
        *MINING,
        *SERVICES[1:],
        "--rpc-http-api=ETH,NET,WEB3,TRACE,EEA,PRIV",
        "--dev-fork=berlin",
        "--min-gas-price=0",
        "--privacy-enabled",
        "--privacy-enclave-host=127.0.0.1",
        "--privacy-enclave-port=0",
        "--privacy-enclave-tessera-url=http://127.0.0.1:9001",
        "--privacy-enclave-tessera-peers=http://127.0.0.1:9",
    )
    with NodeProcess(folder / "private", *asking, *options) as node:
        target = replace(target_of(node, scale), enclave=Place(HOST, node.ports["enclave-peers"]))
        with watched(target, node.pid, node) as scene:
            yield scene


@contextlib.contextmanager
def shared_node(folder: Path, scale: float, *options: str) -> Iterator[Scene]:
    """Start a node that two tenants share. Their tokens name enclave keys."""
    secret = folder / "secret"
    secret.write_bytes(SECRET)
    keys = []
    for index, private in enumerate(ENCLAVE_SECRETS[:2]):
        keys.append(folder / f"tenant{index}.key")
        write_pair(keys[-1], KeyPair.of(private), SystemEntropy())
    asking = (
        *MINING,
        "--rpc-http-api=ETH,NET,WEB3,EEA,PRIV",
        "--rpc-http-authentication-enabled",
        f"--rpc-http-authentication-jwt-public-key-file={secret}",
        "--rpc-http-authentication-jwt-algorithm=HS256",
        "--dev-fork=berlin",
        "--min-gas-price=0",
        "--privacy-enabled",
        "--privacy-multi-tenancy-enabled",
        f"--privacy-enclave-key-file={','.join(map(str, keys))}",
        "--rpc-ws-enabled",
        "--rpc-ws-port=0",
        "--durable-commits=false",
    )
    with NodeProcess(folder / "shared", *asking, *options) as node:
        target = target_of(node, scale, SECRET)
        with watched(target, node.pid, node, header=token(target, time.time() + DAY_S)) as scene:
            yield scene


OPEN, TOKENS, TLS, GATEWAY, PEERS, PRIVATE, SHARED = "open", "tokens", "tls", "gateway", "peers", "private", "shared"
PEERS_QBFT = "peers-qbft"
QBFT, IBFT2, CLIQUE = "qbft", "ibft2", "clique"
SCENES: dict[str, Opening] = {
    OPEN: open_node,
    TOKENS: guarded_node,
    TLS: encrypted_node,
    GATEWAY: gateway,
    PEERS: validator,
    PEERS_QBFT: qbft_validator,
    QBFT: network_of("qbft"),
    IBFT2: network_of("ibft2"),
    CLIQUE: network_of("clique"),
    PRIVATE: private_node,
    SHARED: shared_node,
}

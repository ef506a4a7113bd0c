"""Texts about a network for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from socket import create_connection
from typing import Final

from ophion.chainspec.dev_network import ORIGINAL_ACCOUNTS
from ophion.gateway.backends import BackendNetwork, ServiceAddress, ServiceKind
from ophion.quickstart.monitoring import FOLDER, installed
from ophion.quickstart.plan import NetworkPlan

_PATIENCE_S: Final = 0.5


def paragraphs(*parts: Iterable[str]) -> Iterator[str]:
    """Join non-empty parts with an empty line between them."""
    is_first = True
    for lines in map(list, parts):
        if lines and not is_first:
            yield ""
        yield from lines
        is_first = is_first and not lines


def begins(plan: NetworkPlan) -> str:
    """Return the text that describes the network, shown before its first block."""
    pace = f"blocks every {plan.period_s:g} s" if plan.period_s else "a block for each transaction"
    return f"Starting {len(plan.nodes)} nodes and a proxy: {plan.consensus.value}, {pace} …"


def is_up(plan: NetworkPlan, seconds: float) -> str:
    """Return the line shown when every node is online. Without transactions there may be no block yet."""
    return f"Every node {'has a new block' if plan.period_s else 'answers'} after {seconds:.1f} s."


def addresses(address: str, site: BackendNetwork, directory: Path, where: str = "") -> Iterator[str]:
    """Return the addresses of the services in the order of the Pantheon quickstart (operations.md 15.1).

    `where` is the option that selects this directory in commands.
    """
    start = f"`ophion quickstart up --print-commands{where}` shows how,"
    base = f"http://{address}"
    rows = [
        ("JSON-RPC over HTTP", f"{base}/jsonrpc"),
        ("JSON-RPC over WebSocket", f"ws://{address}/jsonws"),
        ("GraphQL", f"{base}/graphql"),
        ("Explorer and dashboard", f"{base}/"),
        ("Prometheus", _tool(site, "prometheus", f"{base}/prometheus/graph", directory, start)),
        ("Grafana", _tool(site, "grafana", f"{base}/grafana-dashboard", directory, start)),
    ]
    for name, where in rows:
        yield f"  {name:<24} : {where}"


def _tool(site: BackendNetwork, name: str, url: str, directory: Path, start: str) -> str:
    if name in site.tools and name in installed():
        return url if _listens(site.tools[name]) else f"not started; {start} and it is at {url}"
    return f"not installed; its configuration is in {directory / FOLDER}"


def _listens(place: ServiceAddress) -> bool:
    try:
        create_connection((place.host, place.port), _PATIENCE_S).close()
    except OSError:
        return False
    return True


def nodes(site: BackendNetwork, processes: Mapping[str, int], heights: Mapping[str, int | None]) -> Iterator[str]:
    """Return the status of the nodes, one line per node."""
    yield _row("node", "role", "process", "block", "HTTP", "WebSocket", "P2P", "metrics")
    for node in site.nodes:
        pid, height = processes.get(node.name), heights.get(node.name)
        http, socket = node.places[ServiceKind.JSON_RPC], node.places[ServiceKind.WEBSOCKET]
        yield _row(
            node.name,
            node.role,
            "down" if pid is None else str(pid),
            "-" if height is None else str(height),
            f"http://{http.host}:{http.port}",
            f"ws://{socket.host}:{socket.port}",
            (node.enode or ":").rpartition(":")[2],
            str(node.places[ServiceKind.METRICS].port),
        )


def _row(name: str, role: str, pid: str, height: str, http: str, socket: str, p2p: str, metrics: str) -> str:
    return f"  {name:<12} {role:<10} {pid:>8} {height:>8}  {http:<22} {socket:<20} {p2p:>6} {metrics:>8}"


def enclaves(keys: Mapping[str, str]) -> Iterator[str]:
    """Return the lines that list the enclave keys, which name the recipients of private transactions."""
    if keys:
        yield "  Private transactions: name members by the public keys of their enclaves (privateFrom, privateFor)."
    for name, key in keys.items():
        yield f"  {name:<12} {key}"


def accounts(plan: NetworkPlan) -> Iterator[str]:
    """Return the lines that list the funded accounts."""
    yield f"  Chain id {plan.chain_id}. Accounts with funds; these keys are public test keys, never use them for value:"
    for account in ORIGINAL_ACCOUNTS:
        yield f"  0x{account.address.hex()}  0x{account.private_key.hex()}"

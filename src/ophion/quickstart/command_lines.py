"""Command lines of the processes, which also work without the quickstart."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ophion.chainspec.dev_network import ORIGINAL_ACCOUNTS
from ophion.permissions.contract_genesis import ACCOUNT_INGRESS
from ophion.quickstart.plan import Consensus, NetworkPlan, PlannedNode, PlannedRole
from ophion.quickstart.ports import HOST, NetworkPorts

_GROUPS: Final = ("ETH", "NET", "WEB3", "ADMIN", "DEBUG", "TRACE", "TXPOOL", "MINER")
_ENGINE_GROUPS: Final = {Consensus.QBFT: "QBFT", Consensus.IBFT2: "IBFT", Consensus.CLIQUE: "CLIQUE"}
MARKER_KEY: Final = "marker.key"
_SOCKETS: Final = 8192
"""Limit of WebSocket connections per node, equal to the limit of the proxy."""


def node_options(plan: NetworkPlan, layout: NetworkPorts, node: PlannedNode, directory: Path) -> list[str]:
    """Return the options of one node."""
    ports = layout.nodes[node.name]
    groups = [*_GROUPS, *([_ENGINE_GROUPS[plan.consensus]] if plan.consensus in _ENGINE_GROUPS else [])]
    if plan.has_permissions:
        groups.append("PERM")
    if node.role is PlannedRole.MEMBER:
        groups += ["EEA", "PRIV"]
    api = ",".join(groups)
    return [
        f"--data-path={directory / node.name}",
        *_network(plan, node, directory),
        f"--p2p-interface={HOST}",
        f"--p2p-port={ports.p2p}",
        "--discovery-enabled=false",
        "--rpc-http-enabled",
        f"--rpc-http-port={ports.http}",
        f"--rpc-http-api={api}",
        "--rpc-ws-enabled",
        f"--rpc-ws-port={ports.websocket}",
        f"--rpc-ws-api={api}",
        f"--rpc-ws-max-active-connections={_SOCKETS}",
        "--graphql-http-enabled",
        f"--graphql-http-port={ports.graphql}",
        "--metrics-enabled",
        f"--metrics-port={ports.metrics}",
        "--revert-reason-enabled",
        "--rpc-error-wording=modern",
        *(["--min-gas-price=0"] if plan.has_free_gas else []),
        *_permissions(plan),
        *_privacy(node, directory),
    ]


def _network(plan: NetworkPlan, node: PlannedNode, directory: Path) -> list[str]:
    if plan.consensus is not Consensus.DEV:
        return [f"--genesis-file={directory / 'genesis.json'}"]
    options = ["--network=dev"]
    if node.role is PlannedRole.VALIDATOR:
        options += ["--miner-enabled", f"--miner-coinbase=0x{ORIGINAL_ACCOUNTS[0].address.hex()}"]
        options += [f"--block-period={plan.period_s:g}"] if plan.period_s else []
    return options


def _permissions(plan: NetworkPlan) -> list[str]:
    """Return the permission options: a file for nodes, because ports may change, and contracts for accounts."""
    if not plan.has_permissions:
        return []
    return [
        "--permissions-nodes-config-file-enabled",
        "--permissions-accounts-contract-enabled",
        f"--permissions-accounts-contract-address=0x{ACCOUNT_INGRESS.hex()}",
    ]


def _privacy(node: PlannedNode, directory: Path) -> list[str]:
    """Return the privacy options: an embedded enclave, and a funded account that signs the markers."""
    if node.role is not PlannedRole.MEMBER:
        return []
    return ["--privacy-enabled", f"--privacy-marker-transaction-signing-key-file={directory / node.name / MARKER_KEY}"]


def proxy_options(layout: NetworkPorts, directory: Path) -> list[str]:
    """Return the command and options of the proxy."""
    return ["quickstart", "proxy", f"--site={directory / 'site.json'}", f"--port={layout.proxy}"]


def program(arguments: Sequence[str]) -> list[str]:
    """Return the command that runs this package with this interpreter."""
    return [sys.executable, "-m", "ophion", *arguments]


def shown(arguments: Sequence[str]) -> str:
    """Return the command line as text for a shell."""
    return shlex.join(["ophion", *arguments])

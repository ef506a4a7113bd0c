"""Health checks between the steps of a rolling upgrade, by JSON-RPC."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from ophion.cli.doctor import CheckedNode, examine
from ophion.cli.key_rotation import engine_methods
from ophion.cli.node_client import RpcNode
from ophion.cli.untrusted_text import escape_untrusted
from ophion.cli.upgrade_plan import NodeEntry, NodeRole, ProposerTurns, max_offline
from ophion.errors import CommandError, OphionError
from ophion.native.crypto import address_of
from ophion.primitives.enode import Enode
from ophion.primitives.hexcodec import data as hex_text
from ophion.runtime.clock import SystemClock

_PERIOD_BLOCKS: Final = 10
"""Number of blocks from which the block period is computed."""
_MIN_WAIT_S: Final = 10.0
_WAIT_PERIODS: Final = 4
_POLL_S: Final = 0.5
_MAX_LAG: Final = 2
"""Maximum number of blocks by which a node may be behind the highest head."""


class NetworkState(Struct, frozen=True):
    """The state of the network before a step of a rolling upgrade."""

    checked: dict[str, CheckedNode]
    """The checked nodes, by name."""
    turns: ProposerTurns
    is_clique: bool
    addresses: dict[str, str]
    """Known validator addresses, by node name."""

    @property
    def online(self) -> list[CheckedNode]:
        return [node for node in self.checked.values() if node.problem is None]


def look_at(nodes: Sequence[NodeEntry], token: str | None) -> NetworkState:
    """Query all nodes. Raises `CommandError` if no node answers."""
    now = SystemClock().now()
    checked = {node.name: examine(node.rpc, now, token) for node in nodes}
    source = next((node for node in nodes if checked[node.name].problem is None), None)
    if source is None:
        raise CommandError(f"No node answers. {nodes[0].name}: {checked[nodes[0].name].problem}")
    rpc = RpcNode(source.rpc, token)
    with rpc.reading("validators"):
        methods, found = engine_methods(source.rpc, rpc)
        validators = tuple(sorted(str(address).lower() for address in found))
        turns = _turns(rpc, validators)
    addresses = {
        node.name: node.address.lower() if node.address is not None else _node_address(RpcNode(node.rpc, token))
        for node in nodes
        if checked[node.name].problem is None and node.role is NodeRole.VALIDATOR
    }
    is_clique = methods.validators.startswith("clique")
    return NetworkState(
        checked, turns, is_clique, {name: known for name, known in addresses.items() if known is not None}
    )


def _turns(rpc: RpcNode, validators: tuple[str, ...]) -> ProposerTurns:
    head = rpc.ask("eth_getBlockByNumber", "latest", False)
    number = int(head["number"], 16)
    before = rpc.ask("eth_getBlockByNumber", hex(max(0, number - _PERIOD_BLOCKS)), False)
    # start at block 1, because any length of time may lie between the timestamps of genesis and block 1
    first = before if int(before["number"], 16) else rpc.ask("eth_getBlockByNumber", hex(min(1, number)), False)
    blocks = number - int(first["number"], 16)
    period_s = (int(head["timestamp"], 16) - int(first["timestamp"], 16)) / blocks if blocks else 1.0
    return ProposerTurns(validators, str(head["miner"]).lower(), period_s)


def _node_address(rpc: RpcNode) -> str | None:
    """Return the address of the node key, or None if the node does not report its enode."""
    for method, read in (("net_enode", str), ("admin_nodeInfo", _enode_of)):
        try:
            return hex_text(address_of(Enode.parse(read(rpc.ask(method))).node_id))
        except (OphionError, ValueError, LookupError, TypeError):
            continue
    return None


def _enode_of(info: Any) -> str:
    return str(info["enode"])


def problems(
    network: NetworkState, nodes: Sequence[NodeEntry], upgraded: Sequence[NodeEntry], version: str | None
) -> Iterator[str]:
    """Yield the reasons not to continue the upgrade. `upgraded` lists the nodes that are already upgraded."""
    checked = network.checked
    offline = [node for node in nodes if checked[node.name].problem is not None]
    for node in offline:
        yield f"{node.name} does not answer: {checked[node.name].problem}. Start it before you go on."
    down = sum(1 for node in offline if node.role is NodeRole.VALIDATOR)
    spare = max_offline(len(network.turns.validators), network.is_clique)
    if down > spare:
        yield f"{down} validators are offline and {spare} may be: start them again before anything else."
    highest = max(node.height for node in network.online)
    for node in nodes:
        found = checked[node.name]
        if found.problem is not None:
            continue
        if found.height < highest - _MAX_LAG:
            yield f"{node.name} is at block {found.height}, the network at {highest}: wait until it has caught up."
        if found.peers == 0:
            yield f"{node.name} has no peers: check its static nodes, bootnodes and --p2p-host."
        if node.role is NodeRole.VALIDATOR:
            address = network.addresses.get(node.name)
            if address is None:
                yield f"{node.name} does not report its enode: add its validator address to the plan as 'address'."
            elif address not in network.turns.validators:
                yield f"{node.name} ({address}) is not a validator: correct its role or its address in the plan."
    for node in upgraded:
        client = checked[node.name].client
        if version is not None and checked[node.name].problem is None and version not in client:
            yield f"{node.name} runs {client} instead of {version}: install the new version and start it again."


def fork(nodes: Sequence[NodeEntry], network: NetworkState, token: str | None) -> str | None:
    """Return an error text if two nodes have different blocks at the same height, otherwise None."""
    online = [node for node in nodes if network.checked[node.name].problem is None]
    number = min(network.checked[node.name].height for node in online)
    hashes: dict[str, list[str]] = {}
    for node in online:
        rpc = RpcNode(node.rpc, token)
        with rpc.reading("a block"):
            found = rpc.ask("eth_getBlockByNumber", hex(number), False)
            hashes.setdefault(escape_untrusted(found["hash"]), []).append(node.name)
    if len(hashes) < 2:
        return None
    shown = "; ".join(f"{', '.join(names)}: {hash}" for hash, names in hashes.items())
    return f"The nodes have different blocks at height {number}: {shown}. Stop the upgraded node and keep its data."


def wait_for_block(
    node: NodeEntry, height: int, period_s: float, token: str | None, sleep: Callable[[float], None]
) -> bool:
    """Wait until a node is above a height. Returns False after four block periods, but not before `_MIN_WAIT_S`."""
    rpc = RpcNode(node.rpc, token)
    limit_s = max(_MIN_WAIT_S, _WAIT_PERIODS * period_s)
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        with rpc.reading("eth_blockNumber"):
            if int(rpc.ask("eth_blockNumber"), 16) > height:
                return True
        sleep(min(_POLL_S, period_s))
    return False

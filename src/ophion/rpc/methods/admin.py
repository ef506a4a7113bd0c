"""admin_*: administration of the node (json-rpc.md 5.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ophion.permissions.node_rules import Action
from ophion.primitives.enode import Enode, EnodeError, NodeIdError
from ophion.primitives.hexcodec import data, quantity
from ophion.rpc.errors import INVALID_NODE_ID, NODE_NOT_PERMITTED, PARSE_ERROR, invalid_params
from ophion.rpc.methods.client import local_enode, require_p2p
from ophion.rpc.schema import render
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.schemas import NodeInfoResult, PeersResult
from ophion.rpc.schema.wire_types import Boolean, Text, TextParam, WireType, decode_text
from ophion.rpc.services.context import RpcContext
from ophion.runtime.logs import LogLevel, set_level

if TYPE_CHECKING:
    from ophion.peers.eth.peer import EthPeer
    from ophion.peers.peer import Peer
    from ophion.peers.service import PeerService


def _decode_names(value: object) -> list[str]:
    if type(value) is not list:
        raise invalid_params("loggers: an array is expected")
    return [decode_text(member) for member in value]


NamesParam = Annotated[
    list[str], WireType("names", "names", {"type": "array", "items": {"type": "string"}}, _decode_names)
]


@method("admin_addPeer", exact_count=True)
def add_peer(ctx: RpcContext, enode: TextParam) -> Boolean:
    """Adds a peer and keeps a connection to it. Returns false if the peer was added before."""
    peers = require_p2p(ctx)
    remote = _remote(enode, peers)
    rules = ctx.permissions.node_rules
    # the rules check an unresolved host name later, before each dial
    is_known = bool(rules.resolve(remote).ip)
    refusal = rules.refusal_of(remote, Action.DIAL) if is_known else None
    if refusal is not None:
        raise NODE_NOT_PERMITTED(refusal)
    return peers.add_static(remote)


@method("admin_removePeer", exact_count=True)
def remove_peer(ctx: RpcContext, enode: TextParam) -> Boolean:
    """Disconnects a peer and stops reconnecting to it. Returns false if the peer was not added before."""
    peers = require_p2p(ctx)
    return peers.remove_static(_remote(enode, peers))


def _remote(url: str, peers: PeerService) -> Enode:
    try:
        enode = Enode.parse(url, host_names=peers.host_names is not None)
    except NodeIdError:
        raise INVALID_NODE_ID() from None
    except EnodeError as error:
        raise PARSE_ERROR(error.cause) from None
    if not enode.tcp_port:
        raise PARSE_ERROR("the listening port is 0")
    return enode


@method("admin_peers", examples=[Example([], [])])
def peers(ctx: RpcContext) -> PeersResult:
    """Returns the connected peers."""
    eth = ctx.eth_peers
    return [_peer(peer, None if eth is None else eth.by_id(peer.id)) for peer in require_p2p(ctx).peers]


def _peer(peer: Peer, eth: EthPeer | None) -> dict[str, Any]:
    shown = {
        "version": quantity(peer.hello.version),
        "name": peer.hello.client_id,
        "caps": peer.hello.caps,
        "network": {
            "localAddress": _host_and_port(*peer.local),
            "remoteAddress": _host_and_port(*peer.remote),
            "inbound": peer.is_inbound,
            "static": peer.is_static,
        },
        "port": quantity(peer.hello.listen_port),
        "id": data(peer.id),
        "enode": peer.enode.url,
    }
    if eth is not None:
        difficulty = eth.head.total_difficulty
        chain = {"head": data(eth.head.hash), "version": peer.version("eth")}
        shown["protocols"] = {"eth": chain if difficulty is None else {"difficulty": quantity(difficulty), **chain}}
    return shown


def _host_and_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@method("admin_nodeInfo", needs={"chain"})
def node_info(ctx: RpcContext) -> NodeInfoResult:
    """Returns the identity of this node and its chain."""
    queries = ctx.queries
    if ctx.peers is None and ctx.dev is not None:
        # a development node has no peers and no address, but tools call this method on it too
        service, enode = None, Enode(ctx.node.node_id, "127.0.0.1", 0, 0)
    else:
        service = require_p2p(ctx)
        enode = local_enode(service)
    discovery = {"discovery": enode.udp_port} if enode.udp_port else {}
    record = {} if service is None or service.discovery is None else {"enr": service.discovery.record.text}
    return {
        "enode": enode.url,
        **record,
        "listenAddr": _host_and_port(enode.ip, enode.tcp_port),
        "ip": enode.ip,
        "name": ctx.node.client_version,
        "id": ctx.node.node_id.hex(),
        "ports": {**discovery, "listener": enode.tcp_port},
        "protocols": {
            "eth": {
                "config": render.chain_config(queries.spec),
                "difficulty": queries.total_difficulty(queries.head_hash) or 0,
                "genesis": data(ctx.node.genesis_hash),
                "head": data(queries.head_hash),
                "network": ctx.node.network_id,
            }
        },
    }


@method("admin_changeLogLevel", examples=[Example(["INFO"], "Success")])
def change_log_level(ctx: RpcContext, level: TextParam, loggers: NamesParam | None = None) -> Text:
    """Sets the level (OFF, FATAL, ERROR, WARN, INFO, DEBUG, TRACE or ALL) of the given loggers, or of all loggers."""
    log_level = LogLevel.named(level)
    if log_level is None:
        raise invalid_params("level: one of OFF, FATAL, ERROR, WARN, INFO, DEBUG, TRACE and ALL is expected")
    set_level(log_level, loggers)
    return "Success"


@method("admin_datadir")
def data_directory(ctx: RpcContext) -> Text:
    """Returns the data directory, which holds chain, state and node key."""
    return ctx.data_path

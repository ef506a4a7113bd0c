"""admin_*: the node's operator (json-rpc.md 5.1)."""

from __future__ import annotations

from typing import Annotated

from ophion.primitives.enode import Enode, EnodeError, NodeIdError
from ophion.primitives.hexcodec import data
from ophion.rpc.errors import INVALID_NODE_ID, P2P_NOT_RUNNING, PARSE_ERROR, invalid_params
from ophion.rpc.language import render
from ophion.rpc.language.registry import Example, method
from ophion.rpc.language.schemas import NodeInfoResult, PeersResult
from ophion.rpc.language.wire_types import Boolean, Text, TextParam, Wire, decode_text
from ophion.rpc.methods.client import local_enode, require_p2p
from ophion.rpc.questions.context import RpcContext
from ophion.runtime.logs import LogLevel, set_level


def _decode_names(value: object) -> list[str]:
    if type(value) is not list:
        raise invalid_params("loggers: an array is expected")
    return [decode_text(member) for member in value]


NamesParam = Annotated[list[str], Wire("names", "names", {"type": "array", "items": {"type": "string"}}, _decode_names)]


@method("admin_addPeer", exact_count=True)
def add_peer(ctx: RpcContext, enode: TextParam) -> Boolean:
    """Keep a connection to another node; false when that is so already."""
    _peer(ctx, enode)
    raise P2P_NOT_RUNNING()


@method("admin_removePeer", exact_count=True)
def remove_peer(ctx: RpcContext, enode: TextParam) -> Boolean:
    """Drop another node and stop connecting to it; false when it was not kept."""
    _peer(ctx, enode)
    raise P2P_NOT_RUNNING()


def _peer(ctx: RpcContext, url: str) -> Enode:
    require_p2p(ctx)
    try:
        enode = Enode.parse(url)
    except NodeIdError:
        raise INVALID_NODE_ID() from None
    except EnodeError as error:
        raise PARSE_ERROR(error.cause) from None
    if not enode.tcp_port:
        raise PARSE_ERROR("the listening port is 0")
    return enode


@method("admin_peers", examples=[Example([], [])])
def peers(ctx: RpcContext) -> PeersResult:
    """The nodes this one is connected with."""
    require_p2p(ctx)
    return []


@method("admin_nodeInfo", needs={"chain"})
def node_info(ctx: RpcContext) -> NodeInfoResult:
    """Identity of this node and the chain it follows."""
    require_p2p(ctx)
    enode, queries = local_enode(ctx), ctx.queries
    return {
        "enode": enode.url,
        "ip": enode.ip,
        "name": ctx.node.client_version,
        "id": ctx.node.node_id.hex(),
        "ports": {},
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
    """Write more or less to the log: OFF, FATAL, ERROR, WARN, INFO, DEBUG, TRACE or ALL; for all loggers or some."""
    wanted = LogLevel.named(level)
    if wanted is None:
        raise invalid_params("level: one of OFF, FATAL, ERROR, WARN, INFO, DEBUG, TRACE and ALL is expected")
    set_level(wanted, loggers)
    return "Success"

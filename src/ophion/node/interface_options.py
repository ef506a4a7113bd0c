"""Options of the public interface: JSON-RPC over HTTP and WebSocket, GraphQL."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar

from ophion.node.access_options import names_list
from ophion.rpc.transport.options import ListenerConfig, listening_port
from ophion.runtime.options import at_least, between, option

MEBIBYTE = 2**20
MAX_WORKERS = 64


class ApiGroup(Enum):
    """The API groups. Each service enables its own groups."""

    ADMIN = "admin"
    ANVIL = "anvil"
    CLIQUE = "clique"
    DEBUG = "debug"
    EEA = "eea"
    ERIGON = "erigon"
    ETH = "eth"
    EVM = "evm"
    HARDHAT = "hardhat"
    IBFT = "ibft"
    MINER = "miner"
    NET = "net"
    OTS = "ots"
    PARITY = "parity"
    PERM = "perm"
    PERSONAL = "personal"
    PLUGINS = "plugins"
    PRIV = "priv"
    QBFT = "qbft"
    SQL = "sql"
    TRACE = "trace"
    TXPOOL = "txpool"
    WEB3 = "web3"


CHEAT_CODES = frozenset({ApiGroup.ANVIL, ApiGroup.EVM, ApiGroup.HARDHAT})
"""API groups whose methods edit a development chain."""

DEFAULT_GROUPS = (ApiGroup.ETH, ApiGroup.NET, ApiGroup.WEB3)


def _cors_origins() -> Any:
    return option(
        "--{service}-cors-origins",
        default=(),
        check=names_list("domains"),
        needs="--{service}-enabled",
        help="Origins that may call from a browser (https://page.example), `all` or `none`. A `*` "
        "stands for any port (http://localhost:*), name (https://*.example.org) or extension (chrome-extension://*).",
    )


class RpcConfig(ListenerConfig):
    """JSON-RPC over one transport: options that HTTP and WebSocket share."""

    groups: tuple[ApiGroup, ...] = option(
        "--{service}-api",
        "--{service}-apis",
        default=DEFAULT_GROUPS,
        needs="--{service}-enabled",
        help="API groups to enable.",
    )
    max_connections: int = option(
        "--{service}-max-active-connections",
        default=4096,
        check=at_least(1),
        needs="--{service}-enabled",
        help="Maximum number of connections; above it, the connection that was idle longest is closed.",
    )


class HttpConfig(RpcConfig):
    """JSON-RPC over HTTP: port, origins, limits and enabled methods."""

    names: ClassVar[Mapping[str, str]] = {"service": "rpc-http", "content": "JSON-RPC over HTTP"}

    port: int = listening_port(8545)
    cors_origins: tuple[str, ...] = _cors_origins()
    max_content_length: int = option(
        "--{service}-max-request-content-length",
        default=16 * MEBIBYTE,
        check=at_least(1),
        needs="--{service}-enabled",
        help="Maximum size of a request in bytes.",
    )
    max_batch_size: int = option(
        "--{service}-max-batch-size",
        default=1024,
        check=at_least(1),
        needs="--{service}-enabled",
        help="Maximum number of requests in a batch.",
    )
    errors_as_400: bool = option(
        "--{service}-error-status-400",
        default=False,
        needs="--{service}-enabled",
        help="Answer errors of methods with HTTP status 400, as Pantheon 1.2 did, instead of 200.",
    )
    workers: int = option(
        "--rpc-workers",
        default=0,
        check=between(0, MAX_WORKERS),
        metavar="COUNT",
        needs="--{service}-enabled",
        help="Number of additional processes that answer reads on this port from the same database. The node answers "
        "all other requests.",
    )


class WebSocketConfig(RpcConfig):
    """JSON-RPC over WebSocket: port, origins, limits and enabled methods."""

    names: ClassVar[Mapping[str, str]] = {
        "service": "rpc-ws",
        "content": "JSON-RPC and subscriptions over WebSocket",
    }

    port: int = listening_port(8546)
    cors_origins: tuple[str, ...] = option(
        "--{service}-cors-origins",
        default=(),
        check=names_list("domains"),
        needs="--{service}-enabled",
        help="Origins that may open a WebSocket from a browser. (default: those of --rpc-http-cors-origins)",
    )
    max_frame_size: int | None = option(
        "--{service}-max-frame-size",
        default=None,
        check=at_least(125),
        needs="--{service}-enabled",
        help="Maximum bytes of a frame. A message may have four times as many, but not more than a request over HTTP. "
        "(default: the maximum of a request over HTTP)",
    )


class GraphqlConfig(ListenerConfig):
    """GraphQL over HTTP: port and origins."""

    names: ClassVar[Mapping[str, str]] = {"service": "graphql-http", "content": "GraphQL over HTTP"}

    port: int = listening_port(8547)
    cors_origins: tuple[str, ...] = _cors_origins()

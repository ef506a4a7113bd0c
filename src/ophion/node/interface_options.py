"""Options of the public interface: JSON-RPC over HTTP and WebSocket, GraphQL, allowed hosts and gas prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar

from ophion.rpc.dispatch.error_wording import ErrorWording
from ophion.rpc.schema.answer_fields import AnswerFields
from ophion.rpc.transport.options import ListenerConfig, listening_port
from ophion.runtime.options import Options, at_least, between, option
from ophion.runtime.options.values import read_int

MEBIBYTE = 2**20


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

_WILDCARDS = frozenset({"*", "all"})


def names_list(noun: str) -> Callable[[Any], None]:
    """Return a check for a list of names. `*`, `all` or `none` must be the only entry of a list."""

    def check(names: Sequence[str]) -> None:
        if len(names) < 2:
            return
        if not _WILDCARDS.isdisjoint(names):
            raise ValueError(f"Values '*' or 'all' can't be used with other {noun}")
        if "none" in names:
            raise ValueError(f"Value 'none' can't be used with other {noun}")

    return check


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
        help="Simultaneous connections; beyond them the longest idle one is closed.",
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
        help="Bytes of the longest frame; a message may have four times as many, though no more than a request over "
        "HTTP. (default: as many as that)",
    )


class GraphqlConfig(ListenerConfig):
    """GraphQL over HTTP: port and origins."""

    names: ClassVar[Mapping[str, str]] = {"service": "graphql-http", "content": "GraphQL over HTTP"}

    port: int = listening_port(8547)
    cors_origins: tuple[str, ...] = _cors_origins()


def _percentile(text: str) -> int:
    """Read a whole number. A decimal point with zeros (50.0) is accepted, because Besu writes it."""
    whole, _, fraction = text.partition(".")
    return read_int(text if fraction.strip("0") else whole)


class AccessConfig(Options):
    """Access to the public interface."""

    host_allow_list: tuple[str, ...] = option(
        "--host-whitelist",
        "--host-allowlist",
        default=("localhost", "127.0.0.1"),
        check=names_list("hostnames"),
        help="Names under which clients may address this node (Host header): names, addresses, `*` or `none`.",
    )
    error_wording: ErrorWording = option(
        "--rpc-error-wording",
        default=ErrorWording.ORIGINAL,
        help="Texts of JSON-RPC errors: those of Pantheon 1.2, or the modern ones that libraries look for. "
        "`geth` also has go-ethereum's codes.",
    )
    answer_fields: AnswerFields = option(
        "--rpc-answer-fields",
        default=AnswerFields.CURRENT,
        help="Fields of JSON-RPC answers. Values other than `current` omit blockTimestamp, and blob fees in "
        "eth_feeHistory, which older clients do not have.",
    )
    gas_price_blocks: int = option(
        "--api-gas-price-blocks",
        default=100,
        check=between(1, 10_000),
        help="Number of blocks that eth_gasPrice looks at.",
    )
    gas_price_percentile: int = option(
        "--api-gas-price-percentile",
        default=50,
        metavar="NUMBER",
        parse=_percentile,
        check=between(0, 100),
        help="Percentile of the prices in these blocks that eth_gasPrice returns.",
    )
    gas_price_max: int = option(
        "--api-gas-price-max",
        default=500_000_000_000,
        check=at_least(0),
        help="Upper limit of eth_gasPrice in wei.",
    )
    revert_reason_enabled: bool = option(
        "--revert-reason-enabled",
        default=False,
        help="Store the revert reason of failed transactions and show it in their receipts.",
    )

"""Options about other nodes (operations.md 1.1, networking.md 2.7, 2.8)."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from ophion.peers.policy.addresses import Subnet, read_subnet
from ophion.primitives.enode import Enode, EnodeError, socket_ip
from ophion.runtime.options import Options, at_least, between, hex_bytes, option
from ophion.runtime.options import port as valid_port

_NAME_LENGTH = 64

read_node_id = hex_bytes(64, 64, "a node id: expected 128 hex digits")


def read_ip(text: str) -> str:
    """An address; names are refused because enode URLs cannot hold them."""
    try:
        return socket_ip(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        raise ValueError(f"'{text}' is not an IP address; host names are not accepted") from None


def read_bootnode(text: str) -> Enode:
    """An enode URL that can be asked for other nodes."""
    try:
        enode = Enode.parse(text)
    except EnodeError as error:
        raise ValueError(str(error)) from None
    if not enode.udp_port:
        raise ValueError(f"Bootnodes must have discovery enabled. Invalid bootnode: {text}")
    return enode


def read_identity(text: str) -> str:
    """A name that fits between the slashes of a client name."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip()
    if is_plain and "/" not in text and 0 < len(text) <= _NAME_LENGTH:
        return text
    raise ValueError(f"'{text}' cannot be shown to peers: up to {_NAME_LENGTH} plain characters without / are expected")


class NatMethod(Enum):
    """How peers beyond a router reach this node."""

    UPNP = "UPNP"
    MANUAL = "MANUAL"
    NONE = "NONE"


class SyncMode(Enum):
    """How a chain is fetched from peers."""

    FULL = "FULL"
    FAST = "FAST"


class PeerConfig(Options):
    """Peers."""

    enabled: bool = option("--p2p-enabled", default=True, help="Take part in the network of peers.")
    discovery_enabled: bool = option(
        "--discovery-enabled",
        default=True,
        needs="--p2p-enabled",
        help="Look for peers over UDP; without it only static peers and those who connect here are known.",
    )
    host: str = option(
        "--p2p-host",
        default="127.0.0.1",
        parse=read_ip,
        metavar="IP",
        needs="--p2p-enabled",
        help="Address that peers are told; it is not the one listened on. Other machines need for example 10.0.0.5.",
    )
    interface: str = option(
        "--p2p-interface",
        default="0.0.0.0",
        parse=read_ip,
        metavar="IP",
        needs="--p2p-enabled",
        help="Address to listen on for peers; 0.0.0.0 is every one of this machine.",
    )
    port: int = option(
        "--p2p-port",
        default=30303,
        check=valid_port,
        needs="--p2p-enabled",
        help="Port for peers, TCP and UDP; 0 takes a free one, which the log and the ports file name.",
    )
    nat_method: NatMethod = option(
        "--nat-method",
        default=NatMethod.NONE,
        help="How peers beyond a router reach this node: UPNP asks the router for it, with MANUAL somebody has set the"
        " router up and --p2p-host names its address.",
    )
    bootnodes: tuple[Enode, ...] | None = option(
        "--bootnodes",
        default=None,
        bare=True,
        parse=read_bootnode,
        metavar="ENODE",
        needs="--p2p-enabled",
        help="Nodes to ask for others, for example enode://<128 hex digits>@10.0.0.5:30303. Alone, or empty: this node"
        " is the first one.",
    )
    max_peers: int = option(
        "--max-peers",
        default=25,
        check=at_least(0),
        needs="--p2p-enabled",
        help="Most peers at a time; static peers and validators come on top.",
    )
    limit_remote: bool = option(
        "--remote-connections-limit-enabled",
        default=True,
        help="Limit the share of peers that connected to us. Where all operators trust each other: false.",
    )
    max_remote_percentage: int = option(
        "--remote-connections-max-percentage",
        default=60,
        check=between(0, 100),
        needs="--p2p-enabled",
        help="Share of peers that may have connected to us.",
    )
    banned: tuple[bytes, ...] = option(
        "--banned-node-ids",
        "--banned-node-id",
        default=(),
        parse=read_node_id,
        metavar="ID",
        needs="--p2p-enabled",
        help="Nodes never to peer with: 128 hex digits each, as between // and @ of an enode URL.",
    )
    subnets: tuple[Subnet, ...] = option(
        "--net-restrict",
        default=(),
        parse=read_subnet,
        metavar="SUBNET",
        needs="--p2p-enabled",
        help="Subnets outside of which nobody is peered with, for example 10.0.0.0/8,fd00::/8.",
    )
    static_nodes_file: Path | None = option(
        "--static-nodes-file",
        default=None,
        help='JSON list of peers to stay connected with, ["enode://…"]. (default: static-nodes.json in the data path)',
    )
    identity: str | None = option(
        "--identity",
        default=None,
        parse=read_identity,
        metavar="NAME",
        help="A name shown in this node's client name, for example ophion/validator-1/v…",
    )
    sync_mode: SyncMode = option(
        "--sync-mode",
        default=SyncMode.FULL,
        help="Accepted for old command lines: every block is fetched and executed, also with FAST.",
    )
    fast_sync_min_peers: int = option(
        "--fast-sync-min-peers",
        default=5,
        check=at_least(1),
        needs=("--sync-mode", SyncMode.FAST),
        help="Accepted for old command lines; has no effect.",
    )

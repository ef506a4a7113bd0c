"""Options of the peer service (operations.md 1.1, networking.md 2.7, 2.8)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from ophion.peers.policy.addresses import Subnet, read_subnet
from ophion.primitives.enode import Enode, EnodeError, is_host_name, socket_ip
from ophion.runtime.options import Options, at_least, between, hex_bytes, is_url, option
from ophion.runtime.options import port as valid_port

_MAX_NAME = 64

read_node_id = hex_bytes(64, 64, "a node id: expected 128 hex digits")
read_block_hash = hex_bytes(32, 32, "a block hash: expected 64 hex digits")


def read_checkpoint(text: str) -> str:
    """Parse the location of a checkpoint: a path, or an HTTP(S) address that names a host."""
    if "://" not in text:
        return text
    if not is_url(text, "http", "https"):
        raise ValueError(f"'{text}' is neither a path nor an address that begins with http:// or https://")
    return text


def read_ip(text: str) -> str:
    """Parse an IP address. Rejects host names."""
    try:
        return socket_ip(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        raise ValueError(f"'{text}' is not an IP address; host names are not accepted") from None


def read_host(text: str) -> str:
    """Parse an IP address or a host name. A host name needs --dns-enabled."""
    return text.lower() if is_host_name(text) else read_ip(text)


def read_bootnode(text: str, *, host_names: bool = True) -> Enode:
    """Parse an enode URL, which must have a discovery port. With `host_names` (--dns-enabled), the URL may have a host
    name.
    """
    try:
        enode = Enode.parse(text, host_names=host_names)
    except EnodeError as error:
        raise ValueError(str(error)) from None
    if not enode.udp_port:
        raise ValueError(f"Bootnodes must have discovery enabled. Invalid bootnode: {text}")
    return enode


def read_identity(text: str) -> str:
    """Parse the identity, which becomes part of the client name. The identity must not contain a slash."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip()
    if is_plain and "/" not in text and 0 < len(text) <= _MAX_NAME:
        return text
    raise ValueError(f"'{text}' cannot be shown to peers: up to {_MAX_NAME} plain characters without / are expected")


class NatMethod(Enum):
    """How peers reach this node behind a router."""

    UPNP = "UPNP"
    MANUAL = "MANUAL"
    NONE = "NONE"


class SyncMode(Enum):
    """How a new node gets the chain."""

    FULL = "FULL"
    FAST = "FAST"
    SNAP = "SNAP"
    CHECKPOINT = "CHECKPOINT"


class PeerConfig(Options):
    """Peers: addresses, discovery, limits and synchronisation of the peer-to-peer network."""

    enabled: bool = option("--p2p-enabled", default=True, help="Connect to peers.")
    discovery_enabled: bool = option(
        "--discovery-enabled",
        default=True,
        needs="--p2p-enabled",
        help="Discover peers over UDP; without it, only static peers and inbound connections.",
    )
    host: str = option(
        "--p2p-host",
        default="127.0.0.1",
        parse=read_host,
        metavar="IP",
        needs="--p2p-enabled",
        help="Advertised address, not the one to listen on. Peers on other machines need, for example, 10.0.0.5. "
        "With --dns-enabled also a host name, which is resolved at start.",
    )
    interface: str = option(
        "--p2p-interface",
        default="0.0.0.0",
        parse=read_ip,
        metavar="IP",
        needs="--p2p-enabled",
        help="Address to listen on for peers; 0.0.0.0 is all addresses of this machine.",
    )
    port: int = option(
        "--p2p-port",
        default=30303,
        check=valid_port,
        needs="--p2p-enabled",
        help="Port for peers, TCP and UDP; 0 uses a free port, named in the log and the ports file.",
    )
    nat_method: NatMethod = option(
        "--nat-method",
        default=NatMethod.NONE,
        help="How peers reach this node behind a router: UPNP requests a port mapping; with MANUAL the operator has"
        " mapped the port and --p2p-host is the router's address.",
    )
    bootnodes: tuple[Enode, ...] | None = option(
        "--bootnodes",
        default=None,
        bare=True,
        parse=read_bootnode,
        metavar="ENODE",
        needs="--p2p-enabled",
        help="Nodes to start discovery from, for example enode://<128 hex digits>@10.0.0.5:30303. Without a value this"
        " node is the first of its network.",
    )
    max_peers: int = option(
        "--max-peers",
        default=25,
        check=at_least(0),
        needs="--p2p-enabled",
        help="Maximum number of peers; static peers and validators do not count.",
    )
    limit_remote: bool = option(
        "--remote-connections-limit-enabled",
        default=True,
        help="Limit the share of inbound peers. Set to false where all operators trust each other.",
    )
    max_remote_percentage: int = option(
        "--remote-connections-max-percentage",
        default=60,
        check=between(0, 100),
        needs="--p2p-enabled",
        help="Maximum percentage of inbound peers.",
    )
    banned: tuple[bytes, ...] = option(
        "--banned-node-ids",
        "--banned-node-id",
        default=(),
        parse=read_node_id,
        metavar="ID",
        needs="--p2p-enabled",
        help="Node ids to refuse as peers: 128 hex digits each, the part between // and @ of an enode URL.",
    )
    subnets: tuple[Subnet, ...] = option(
        "--net-restrict",
        default=(),
        parse=read_subnet,
        metavar="SUBNET",
        needs="--p2p-enabled",
        help="Accept and dial peers in these subnets only, for example 10.0.0.0/8,fd00::/8.",
    )
    static_nodes_file: Path | None = option(
        "--static-nodes-file",
        default=None,
        help='JSON list of peers to stay connected with, ["enode://…"]. (default: static-nodes.json in the data path)',
    )
    dns_enabled: bool = option(
        "--dns-enabled",
        default=False,
        needs="--p2p-enabled",
        help="Accept host names in enode URLs: bootnodes, static nodes, permission lists and admin_addPeer. A name that"
        " does not resolve is tried again.",
    )
    dns_update_enabled: bool = option(
        "--dns-update-enabled",
        default=False,
        needs="--dns-enabled",
        help="Resolve host names again every few seconds and after failed connections: nodes may change address.",
    )
    dns_hosts_file: Path | None = option(
        "--dns-hosts-file",
        default=None,
        needs="--dns-enabled",
        help="Names to look up before the system's resolver, in the form of /etc/hosts. Read again when it changes.",
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
        help="How a new node gets the chain: FULL fetches and executes every block; SNAP fetches headers and the state"
        " of a recent block from peers, verified by seals, and old blocks while it runs; CHECKPOINT starts from"
        " --sync-checkpoint. FAST is accepted for old command lines and does the same as FULL.",
    )
    sync_checkpoint: str | None = option(
        "--sync-checkpoint",
        default=None,
        parse=read_checkpoint,
        metavar="PATH|URL",
        needs=("--sync-mode", SyncMode.CHECKPOINT),
        help="Backup of another node to start from: a directory or archive of `ophion storage backup`, or the http(s)"
        " address of an archive. Verified before use; has no effect if the data path has a chain.",
    )
    sync_checkpoint_hash: bytes | None = option(
        "--sync-checkpoint-hash",
        default=None,
        parse=read_block_hash,
        metavar="HASH",
        needs=("--sync-mode", (SyncMode.CHECKPOINT, SyncMode.SNAP)),
        help="Hash of the checkpoint's last block, or of the block whose state SNAP fetches, from a source you trust."
        " Replaces the check of seals, and is needed if a contract names the validators.",
    )
    fast_sync_min_peers: int = option(
        "--fast-sync-min-peers",
        default=5,
        check=at_least(1),
        needs=("--sync-mode", SyncMode.FAST),
        help="Accepted for old command lines; has no effect.",
    )

    def problems(self) -> Iterator[str]:
        if self.sync_mode is SyncMode.SNAP and not self.enabled:
            yield "--sync-mode=SNAP needs peers: remove --p2p-enabled=false, or use FULL."
        if self.sync_mode is SyncMode.CHECKPOINT and self.sync_checkpoint is None:
            yield "--sync-mode=CHECKPOINT needs --sync-checkpoint: the backup to start from."
        if not self.dns_enabled:
            if is_host_name(self.host):
                yield (
                    f"Invalid value for option '--p2p-host': '{self.host}' is not an IP address; host names are not"
                    " accepted without --dns-enabled"
                )
            for bootnode in self.bootnodes or ():
                if bootnode.host:
                    try:
                        read_bootnode(bootnode.url, host_names=False)
                    except ValueError as error:
                        yield f"Invalid value for option '--bootnodes': {error}"

"""web3_*, net_* and rpc_*: identity and interface of this node (json-rpc.md 5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ophion.native.crypto import keccak256
from ophion.primitives.enode import Enode
from ophion.rpc.errors import P2P_DISABLED, P2P_NOT_RUNNING, invalid_params
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.schemas import Discovered, ModulesResult, ServicesResult
from ophion.rpc.schema.wire_types import Boolean, HashResult, Quantity, Text, TextParam, decode_data
from ophion.rpc.services.context import RpcContext

if TYPE_CHECKING:
    from ophion.peers.service import PeerService

_VERSION = "1.0"


@method("web3_clientVersion")
def client_version(ctx: RpcContext) -> Text:
    """Returns name, version, platform and runtime of this node."""
    return ctx.node.client_version


@method(
    "web3_sha3",
    exact_count=True,
    examples=[
        Example(["0x68656c6c6f20776f726c00"], "0x5e39a0a66544c0668bde22d61c47a8710000ece931f13b84d3b2feb44ec96d3f"),
        Example(["0x"], "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
    ],
)
def sha3(ctx: RpcContext, data: TextParam) -> HashResult:
    """Returns the Keccak-256 hash of the data (not SHA3-256, which was standardised later)."""
    if data and not data.startswith("0x"):
        raise invalid_params("data: 0x is missing")
    return keccak256(decode_data(data))


@method("net_version", needs={"chain"}, examples=[Example([], "1")])
def version(ctx: RpcContext) -> Text:
    """Returns the chain id as a decimal number."""
    return str(ctx.queries.spec.chain_id)


@method("net_listening", examples=[Example([], False)])
def listening(ctx: RpcContext) -> Boolean:
    """Returns whether this node accepts peer connections; true with a preset of the development node.

    Programs ask this to check their connection (`isListening` of web3.js). Anvil and Hardhat's node answer true.
    """
    if ctx.has_preset:
        return True
    return ctx.peers is not None and ctx.peers.is_listening


@method("net_peerCount", examples=[Example([], "0x0")])
def peer_count(ctx: RpcContext) -> Quantity:
    """Returns the number of connected peers; 0 on a development network without peers."""
    if ctx.peers is None and ctx.dev is not None:
        return 0
    return len(require_p2p(ctx).peers)


@method("net_enode")
def enode(ctx: RpcContext) -> Text:
    """Returns the enode URL of this node."""
    return local_enode(require_p2p(ctx)).url


@method("net_services")
def services(ctx: RpcContext) -> ServicesResult:
    """Returns host and port of every enabled service."""
    return {name: {"host": one.host, "port": str(one.port)} for name, one in ctx.endpoints().items()}


@method("rpc_modules")
def modules(ctx: RpcContext) -> ModulesResult:
    """Returns the API groups that are enabled on this transport."""
    return dict.fromkeys(ctx.groups, _VERSION)


@method("rpc.discover")
def discover(ctx: RpcContext) -> Discovered:
    """Returns the OpenRPC document of the methods that are enabled on this transport."""
    return ctx.discover()


def require_p2p(ctx: RpcContext) -> PeerService:
    """Return the peer service; raises an error if P2P is off."""
    if ctx.peers is None:
        raise P2P_DISABLED()
    return ctx.peers


def local_enode(peers: PeerService) -> Enode:
    """Return the enode of this node; raises an error if P2P is off."""
    enode = peers.local_enode
    if enode is None:
        raise P2P_NOT_RUNNING()
    return enode

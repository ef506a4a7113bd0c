"""`RpcContext`: the services a method may use, and nothing else.

Handlers receive it as their first argument. It is frozen and the same for every request; the transports differ only in
`groups`. A service that is None is not there on this node or this network, and methods that need it are not enabled
(`@method(needs=...)`): `clique` where the chain runs another consensus, `privacy` where it is off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from ophion.chain.bad_blocks import BadBlocks
from ophion.chain.fee_oracle import FeeOracle
from ophion.chain.queries import Queries
from ophion.consensus.voting import LocalProposals
from ophion.native.executor import LatestRead
from ophion.permissions.permissions import Permissions
from ophion.pool.pool import TxPool
from ophion.primitives.types import Hash32
from ophion.producer.mining_control import MiningControl
from ophion.rpc.schema.registry import SubmitTransaction
from ophion.rpc.services.block_json_cache import BlockJsonCache
from ophion.rpc.services.call_cost import CallCosts
from ophion.rpc.services.filters import Filters
from ophion.rpc.services.receipt_waits import ReceiptWaits
from ophion.rpc.services.subscriptions import Subscriptions
from ophion.rpc.transport.streaming import Streams
from ophion.runtime.lanes import Lanes
from ophion.runtime.metrics import Nested

if TYPE_CHECKING:
    from ophion.dev.node import DevNode  # only development nodes pay for loading it
    from ophion.peers.eth.peers import EthPeers
    from ophion.peers.service import PeerService
    from ophion.privacy.service import Privacy  # only nodes with privacy pay for loading it
    from ophion.producer.bft_driver import BftDriver  # only BFT networks pay for loading it
    from ophion.rpc.services.private_filters import PrivateFilters
    from ophion.rpc.services.private_subscriptions import PrivateSubscriptions
    from ophion.wallet.keyring import Keyring

_ALWAYS: Final = frozenset({"chain", "state"})


class NodeInfo(Struct, frozen=True):
    """Who this node is to others."""

    client_version: str
    node_id: bytes
    """The 64-byte public key of the node."""
    network_id: int
    genesis_hash: Hash32
    protocol_version: int = 68
    """The highest version of the eth protocol that is offered on this network."""


class SyncStatus(Struct, frozen=True):
    """How far a synchronisation has come."""

    starting_block: int
    current_block: int
    highest_block: int

    def fields(self) -> dict[str, str]:
        """As clients see it."""
        return {
            "startingBlock": hex(self.starting_block),
            "currentBlock": hex(self.current_block),
            "highestBlock": hex(self.highest_block),
        }


class Endpoint(Struct, frozen=True):
    """Where a service of this node listens."""

    host: str
    port: int


class RpcLimits(Struct, frozen=True):
    """What a single request may ask for."""

    gas_cap: int = 50_000_000
    """Most gas of a simulated call; 0: no limit but the block's."""
    max_logs_range: int = 0
    """Most blocks between the ends of a log query; 0: no limit."""
    max_trace_range: int = 1000
    """Most blocks between the ends of a trace filter; 0: no limit."""
    max_logs: int = 250_000
    """Most logs in one answer."""
    max_response_bytes: int = 64 * 1024 * 1024
    """Most bytes of an answer that is not sent while it is made."""
    timeout_s: float = 30.0
    shows_revert_reason: bool = False


class RpcContext(Struct, frozen=True):
    """Everything a method may touch."""

    queries: Queries
    pool: TxPool
    mining: MiningControl
    lanes: Lanes
    rendered: BlockJsonCache
    fees: FeeOracle
    filters: Filters
    subscriptions: Subscriptions
    node: NodeInfo
    limits: RpcLimits = field(default_factory=RpcLimits)
    receipt_waits: ReceiptWaits = field(default_factory=ReceiptWaits)
    light_calls: CallCosts = field(default_factory=CallCosts)
    streams: Streams = field(default_factory=Streams)
    permissions: Permissions = field(default_factory=Permissions)
    accounts: Keyring | None = None
    """Keys of accounts that this node signs for; None where it holds none."""
    dev: DevNode | None = None
    """Cheat codes of a development network; None on any other."""
    bad_blocks: BadBlocks | None = None
    """Blocks that broke a rule."""
    clique: LocalProposals | None = None
    """What the operator wants voted; None where the chain does not run Clique."""
    ibft: BftDriver | None = None
    """Consensus of an IBFT 2.0 network."""
    qbft: BftDriver | None = None
    """Consensus of a QBFT network; beside `ibft` where a network moves from one to the other."""
    privacy: Privacy | None = None
    """Private transactions; None where they are switched off."""
    private_filters: PrivateFilters | None = None
    """Polling filters on private logs."""
    private_subscriptions: PrivateSubscriptions | None = None
    """Private logs that are pushed."""
    peers: PeerService | None = None
    """Connections with other nodes; None where the node was told to have none."""
    eth_peers: EthPeers | None = None
    """Those of them that follow the same chain."""
    sync_status: Callable[[], SyncStatus | None] = lambda: None
    """None while the node is in sync."""
    endpoints: Callable[[], Mapping[str, Endpoint]] = dict
    """Services that listen now, by the name `net_services` uses."""
    metrics: Callable[[], Nested] = dict
    """What is measured now, as `debug_metrics` shows it; nothing where metrics are off."""
    data_path: str = ""
    """Where the node keeps what it has."""
    discover: Callable[[], bytes] = lambda: b"{}"
    """The OpenRPC document of the method table this context is used with."""
    groups: tuple[str, ...] = ()
    """Groups that are on for the transport this context is used with."""

    def provides(self, service: str) -> bool:
        """Whether methods that need this service can work."""
        return service in _ALWAYS or getattr(self, service, None) is not None

    def latest_read(self, name: str) -> LatestRead:
        """What answers a question about the newest block without a handler."""
        return self.queries.newest.reading(name)

    @property
    def submit(self) -> SubmitTransaction:
        """Where transactions go that need no handler on their way."""
        return self.pool.bring

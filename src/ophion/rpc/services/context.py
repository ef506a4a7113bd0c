"""`RpcContext`: the services that methods may use.

Handlers receive the context as their first argument. It is frozen and shared by all requests; transports differ only in
`groups`. A service such as `clique` or `privacy` is None if the node or network lacks it. Methods that need the service
are then disabled (`@method(needs=...)`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from ophion.chain.bad_blocks import BadBlocks
from ophion.chain.fee_oracle import FeeOracle
from ophion.chain.queries import ChainQueries
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
from ophion.rpc.services.trace_cache import TraceCache
from ophion.rpc.transport.streaming import StreamLimit
from ophion.runtime.thread_pools import Lanes

if TYPE_CHECKING:
    from ophion.consensus.validator_votes import LocalProposals
    from ophion.dev.cheat_codes import DevNode
    from ophion.peers.eth.peers import EthPeers
    from ophion.peers.service import PeerService
    from ophion.privacy.service import Privacy
    from ophion.producer.bft_driver import BftDriver
    from ophion.rpc.services.private_filters import PrivateFilters
    from ophion.rpc.services.private_subscriptions import PrivateSubscriptions
    from ophion.rpc.services.sql_queries import SqlQueries
    from ophion.runtime.metrics_registry import Nested
    from ophion.wallet.keyring import Keyring

_ALWAYS: Final = frozenset({"chain", "state"})


class NodeInfo(Struct, frozen=True):
    """Identity of this node, as peers see it."""

    client_version: str
    node_id: bytes
    """The 64-byte public key of the node."""
    network_id: int
    genesis_hash: Hash32
    protocol_version: int = 68
    """Highest eth protocol version that this node offers."""
    compat: str | None = None
    """Compatibility profile. None if no profile is chosen."""


class SyncStatus(Struct, frozen=True):
    """Progress of a synchronisation."""

    starting_block: int
    current_block: int
    highest_block: int

    def fields(self) -> dict[str, str]:
        """Return the synchronisation progress as the result object of `eth_syncing`."""
        return {
            "startingBlock": hex(self.starting_block),
            "currentBlock": hex(self.current_block),
            "highestBlock": hex(self.highest_block),
        }


class Endpoint(Struct, frozen=True):
    """Address of a listening service of this node."""

    host: str
    port: int


class RpcLimits(Struct, frozen=True):
    """Limits of a single request."""

    gas_cap: int = 50_000_000
    """Maximum gas of a simulated call. 0 means that only the block's gas limit applies."""
    max_logs_range: int = 0
    """Maximum number of blocks in a log query; 0 for no limit."""
    max_trace_range: int = 1000
    """Maximum number of blocks in a trace filter; 0 for no limit."""
    max_logs: int = 250_000
    """Maximum number of logs in one response."""
    max_response_bytes: int = 64 * 1024 * 1024
    """Maximum size of a response that is not streamed."""
    timeout_s: float = 30.0
    shows_revert_reason: bool = False


class RpcContext(Struct, frozen=True):
    """Services and settings that methods may use."""

    queries: ChainQueries
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
    streams: StreamLimit = field(default_factory=StreamLimit)
    traces: TraceCache = field(default_factory=TraceCache)
    permissions: Permissions = field(default_factory=Permissions)
    accounts: Keyring | None = None
    """Keys of the accounts for which this node signs. None if the node signs for no account."""
    dev: DevNode | None = None
    """Cheat codes of a development network; None on other networks."""
    bad_blocks: BadBlocks | None = None
    """Invalid blocks that this node has seen."""
    clique: LocalProposals | None = None
    """Votes of this node on signers; None if the chain does not run Clique."""
    ibft: BftDriver | None = None
    """Consensus driver of an IBFT 2.0 network; None on other networks."""
    qbft: BftDriver | None = None
    """Consensus driver of a QBFT network. On networks that migrate to QBFT, `ibft` is set too."""
    privacy: Privacy | None = None
    """The private transactions component; None if private transactions are off."""
    private_filters: PrivateFilters | None = None
    """Polling filters on private logs."""
    private_subscriptions: PrivateSubscriptions | None = None
    """Subscriptions to private logs."""
    sql: SqlQueries | None = None
    """SQL queries over the chain; None unless the group SQL is enabled."""
    peers: PeerService | None = None
    """Peer connections; None if P2P is off."""
    eth_peers: EthPeers | None = None
    """Peers on the same chain, connected by the eth protocol."""
    sync_status: Callable[[], SyncStatus | None] = lambda: None
    """Returns the progress of synchronisation; None while the node is in sync."""
    endpoints: Callable[[], Mapping[str, Endpoint]] = dict
    """Returns the listening services by their name in `net_services`."""
    metrics: Callable[[], Nested] = dict
    """Returns the current metrics in the format of `debug_metrics`; empty if metrics are off."""
    data_path: str = ""
    """Data directory of the node."""
    discover: Callable[[], bytes] = lambda: b"{}"
    """Returns the OpenRPC document of the methods that the transport of this context offers."""
    groups: tuple[str, ...] = ()
    """RPC groups that are enabled for the transport that uses this context."""

    def provides(self, service: str) -> bool:
        """Return whether a service exists. Methods that need a missing service are disabled."""
        return service in _ALWAYS or getattr(self, service, None) is not None

    @property
    def has_preset(self) -> bool:
        """Whether the node is a development node with a preset."""
        return self.dev is not None and self.dev.identity.preset is not None

    @property
    def is_anvil(self) -> bool:
        """Whether the node is a development node with the preset `anvil`."""
        return self.dev is not None and self.dev.identity.preset == "anvil"

    @property
    def is_hardhat(self) -> bool:
        """Whether the node is a development node with the preset `hardhat`."""
        return self.dev is not None and self.dev.identity.preset == "hardhat"

    def latest_read(self, name: str) -> LatestRead:
        """Return the fast path of a read method at the newest block. The fast path calls no handler."""
        return self.queries.newest.reading(name)

    @property
    def submit(self) -> SubmitTransaction:
        """Return the fast path that submits raw transactions to the pool. The fast path calls no handler."""
        return self.pool.bring

"""`ChainConfig`: the options of an embedded chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ophion.node.access_options import AccessConfig
from ophion.node.dev_options import DevConfig
from ophion.node.network import NetworkConfig
from ophion.node.storage_options import StorageConfig
from ophion.permissions.options import PermissionConfig
from ophion.pool.options import PoolConfig
from ophion.primitives.types import ZERO_ADDRESS
from ophion.producer.options import ConsensusConfig, MinerConfig

if TYPE_CHECKING:
    from ophion.chainspec.dev_network import DevAccount
    from ophion.node.config import NodeConfig
    from ophion.node.security_module import SecurityModuleConfig


class ChainConfig(Struct, frozen=True):
    """Options of a development node without peers and services."""

    network: NetworkConfig
    dev: DevConfig
    access: AccessConfig = AccessConfig(revert_reason_enabled=True)
    miner: MinerConfig = MinerConfig(enabled=True, coinbase=ZERO_ADDRESS)
    consensus: ConsensusConfig = ConsensusConfig()
    pool: PoolConfig = PoolConfig()
    permissions: PermissionConfig = PermissionConfig()
    storage: StorageConfig = StorageConfig(durable=False)
    has_cheat_codes: bool = True

    @property
    def accounts(self) -> tuple[DevAccount, ...]:
        """Return the funded accounts with published private keys."""
        own = self.dev.accounts
        return self.network.accounts if own is None else own

    @property
    def security_module(self) -> SecurityModuleConfig:
        """The security module; an embedded chain has none."""
        from ophion.node.security_module import SecurityModuleConfig

        return SecurityModuleConfig()

    def node_config(self) -> NodeConfig:
        """Return the options of a node with this chain and all methods."""
        # lazy import: few programs use JSON-RPC of an embedded chain
        from ophion.node.config import NodeConfig
        from ophion.node.interface_options import ApiGroup, HttpConfig, WebSocketConfig
        from ophion.peers.options import PeerConfig

        groups = tuple(ApiGroup)
        return NodeConfig(
            network=self.network,
            dev=self.dev,
            http=HttpConfig(enabled=True, groups=groups, port=0),
            websocket=WebSocketConfig(enabled=True, groups=groups, port=0),
            access=self.access,
            miner=self.miner,
            peers=PeerConfig(enabled=False),
            storage=self.storage,
        )

"""`CoreConfig`: the options that the core of a node reads.

`NodeConfig` has these options and the options of all services. An embedded chain (`ChainConfig`) has only these
options, so that `from ophion import Chain` imports fewer modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ophion.chainspec.dev_network import DevAccount
    from ophion.node.access_options import AccessConfig
    from ophion.node.dev_options import DevConfig
    from ophion.node.network import NetworkConfig
    from ophion.node.security_module import SecurityModuleConfig
    from ophion.node.storage_options import StorageConfig
    from ophion.permissions.options import PermissionConfig
    from ophion.pool.options import PoolConfig
    from ophion.producer.options import ConsensusConfig, MinerConfig


class CoreConfig(Protocol):
    """Interface of the options of chain, pool and producer."""

    @property
    def network(self) -> NetworkConfig: ...

    @property
    def dev(self) -> DevConfig: ...

    @property
    def access(self) -> AccessConfig: ...

    @property
    def miner(self) -> MinerConfig: ...

    @property
    def consensus(self) -> ConsensusConfig: ...

    @property
    def pool(self) -> PoolConfig: ...

    @property
    def permissions(self) -> PermissionConfig: ...

    @property
    def security_module(self) -> SecurityModuleConfig: ...

    @property
    def storage(self) -> StorageConfig: ...

    @property
    def accounts(self) -> tuple[DevAccount, ...]:
        """Return the funded accounts with published private keys."""

    @property
    def has_cheat_codes(self) -> bool:
        """Whether clients may edit the chain."""

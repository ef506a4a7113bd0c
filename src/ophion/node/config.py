"""`NodeConfig`: the options of all packages in one tree.

Each package declares its own options. This module declares the options of the node as a whole. Flags, environment
variables, file keys, help and documentation are derived from this tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import field

from ophion.chainspec.dev_network import DevAccount
from ophion.enclave.options import EnclaveConfig
from ophion.gateway.options import PageConfig
from ophion.graphql.limits import GraphqlLimits
from ophion.metrics.options import MetricsConfig
from ophion.node.access_options import AccessConfig
from ophion.node.compatibility_profiles import CompatibilityProfile, read_compat
from ophion.node.datadir import DataConfig
from ophion.node.dev_options import DevConfig
from ophion.node.interface_options import (
    CHEAT_CODES,
    ApiGroup,
    GraphqlConfig,
    HttpConfig,
    WebSocketConfig,
)
from ophion.node.limit_options import LimitConfig
from ophion.node.network import NetworkConfig
from ophion.node.security_module import SecurityModuleConfig
from ophion.node.security_options import (
    GraphqlTlsConfig,
    HttpAuthConfig,
    HttpTlsConfig,
    MetricsTlsConfig,
    WebSocketAuthConfig,
    WebSocketTlsConfig,
)
from ophion.node.storage_options import StorageConfig
from ophion.peers.options import PeerConfig, SyncMode
from ophion.permissions.options import PermissionConfig
from ophion.pool.options import PoolConfig
from ophion.privacy.options import PrivacyConfig
from ophion.producer.options import ConsensusConfig, MinerConfig
from ophion.runtime.logs import LogFormat, LogLevel
from ophion.runtime.options import Options, at_least, between, is_loopback, option


class LogConfig(Options):
    """Logging: level, format and files of the log."""

    level: LogLevel = option(
        "--logging", "-l", default=LogLevel.INFO, metavar="LEVEL", help="Lowest level that is logged: OFF to ALL."
    )
    format: LogFormat = option("--logging-format", default=LogFormat.TEXT, help="Lines of text or of JSON.")
    file: Path | None = option(
        "--logging-file", default=None, help="Write the log to this file instead of standard output."
    )
    keeps_console: bool = option(
        "--logging-console",
        default=False,
        help="With --logging-file, write the log to standard output too. Where the file cannot be written, the node"
        " then starts with a warning.",
    )
    file_max_size: int = option(
        "--logging-file-max-size",
        default=100,
        check=at_least(0),
        help="Size in MiB at which the log file is renamed to FILE.1 and a new one is started; 0 for no limit.",
    )
    files_kept: int = option(
        "--logging-files-kept",
        default=10,
        check=between(0, 1000),
        help="Number of renamed log files to keep; the oldest is deleted.",
    )
    config_file: Path | None = option(
        "--logging-config-file",
        default=None,
        help="Python logging configuration (JSON or INI) that replaces the other logging options.",
    )
    is_coloured: bool | None = option("--color-enabled", default=None, help="Colour the log. (default: on a terminal)")

    def warnings(self) -> Iterator[str]:
        if self.config_file is not None and self.file is not None:
            yield "--logging-file will have no effect, because --logging-config-file chooses the destination."


class ProcessConfig(Options):
    """Process: compatibility profile and conventions of Besu."""

    compat: CompatibilityProfile | None = option(
        "--compat",
        default=None,
        parse=read_compat,
        metavar="CLIENT",
        help="Use the defaults of pantheon-1.2, besu-21, besu-26, geth-1.13 or goquorum: errors, prices, dev network.",
    )
    besu_conventions: bool = option(
        "--besu-conventions",
        default=False,
        help="Write besu.ports and besu.networks to the data path and exit with code 143 after SIGTERM, as Besu does."
        " `ophion besu` sets it.",
    )
    pid_path: Path | None = option(
        "--pid-path",
        default=None,
        help="Write the id of the process to this file when the node has started; removed when the node stops.",
    )
    besu_home: Path | None = option(
        "--besu-home",
        default=None,
        metavar="DIRECTORY",
        help="Home of a Besu that this program replaces: its default data path. If the program is started as"
        " HOME/bin/besu, and the name of HOME begins with besu, the default is HOME.",
    )
    print_paths_and_exit: tuple[str, ...] | None = option(
        "--print-paths-and-exit",
        default=None,
        metavar="USER",
        bare=True,
        help="Print the data path and the genesis file, if USER (default: besu) has no permissions for them, and exit."
        " For entry points of containers.",
    )


PERM_WITHOUT_PERMISSIONS = "Permissions are disabled. Cannot enable PERM APIs when not using Permissions."


class NodeConfig(Options):
    """A node: the options of all packages."""

    data: DataConfig = field(default_factory=DataConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    dev: DevConfig = field(default_factory=DevConfig)
    http: HttpConfig = field(default_factory=HttpConfig)
    http_auth: HttpAuthConfig = field(default_factory=HttpAuthConfig)
    http_tls: HttpTlsConfig = field(default_factory=HttpTlsConfig)
    websocket: WebSocketConfig = field(default_factory=WebSocketConfig)
    websocket_auth: WebSocketAuthConfig = field(default_factory=WebSocketAuthConfig)
    websocket_tls: WebSocketTlsConfig = field(default_factory=WebSocketTlsConfig)
    graphql: GraphqlConfig = field(default_factory=GraphqlConfig)
    graphql_tls: GraphqlTlsConfig = field(default_factory=GraphqlTlsConfig)
    graphql_limits: GraphqlLimits = field(default_factory=GraphqlLimits)
    page: PageConfig = field(default_factory=PageConfig)
    access: AccessConfig = field(default_factory=AccessConfig)
    limits: LimitConfig = field(default_factory=LimitConfig)
    miner: MinerConfig = field(default_factory=MinerConfig)
    consensus: ConsensusConfig = field(default_factory=ConsensusConfig)
    pool: PoolConfig = field(default_factory=PoolConfig)
    peers: PeerConfig = field(default_factory=PeerConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    metrics_tls: MetricsTlsConfig = field(default_factory=MetricsTlsConfig)
    permissions: PermissionConfig = field(default_factory=PermissionConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    enclave: EnclaveConfig = field(default_factory=EnclaveConfig)
    security_module: SecurityModuleConfig = field(default_factory=SecurityModuleConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    logs: LogConfig = field(default_factory=LogConfig)
    process: ProcessConfig = field(default_factory=ProcessConfig)

    @property
    def speaks_tls(self) -> bool:
        """Whether any connection may use TLS: services, enclaves, the vote store."""
        services = (self.http_tls, self.websocket_tls, self.graphql_tls, self.metrics_tls)
        return self.privacy.enabled or self.consensus.votes_over_tls or any(service.enabled for service in services)

    @property
    def accounts(self) -> tuple[DevAccount, ...]:
        """Return the funded accounts with published private keys. Only development networks have such accounts."""
        own = self.dev.accounts if self.network.name is not None else None
        return self.network.accounts if own is None else own

    @property
    def has_cheat_codes(self) -> bool:
        """Whether clients may edit the chain: JSON-RPC is enabled with cheat-code methods."""
        services = ((self.http.enabled, self.http.groups), (self.websocket.enabled, self.websocket.groups))
        return any(is_on and not CHEAT_CODES.isdisjoint(groups) for is_on, groups in services)

    def problems(self) -> Iterator[str]:
        if self.has_cheat_codes and self.network.name is None:
            yield "The groups ANVIL, EVM and HARDHAT edit the chain: they belong to --network=dev."
        elif self.has_cheat_codes and self.peers.enabled:
            yield "The groups ANVIL, EVM and HARDHAT edit the chain: they need --p2p-enabled=false."
        if self.network.name is None and self.dev.is_used:
            yield "--dev-preset and the other --dev options belong to --network=dev, not to --genesis-file."
        if self.security_module.is_used and self.data.validator_private_key_file is not None:
            yield "--security-module=pkcs11 and --validator-private-key-file both name a validator key. Use one."
        encrypted = (
            (self.http_tls.enabled, "--rpc-http-tls-enabled"),
            (self.websocket_tls.enabled, "--rpc-ws-tls-enabled"),
            (self.graphql_tls.enabled, "--graphql-tls-enabled"),
        )
        for is_encrypted, flag in encrypted:
            if self.page.enabled and is_encrypted:
                yield f"--page-http-enabled cannot be used with {flag}: the web interface has no TLS. Switch it off."
        if self.privacy.enabled and self.storage.states_kept is not None:
            yield "--privacy-enabled needs every state: private states cannot be combined with --state-history."
        if self.privacy.enabled and self.peers.sync_mode is SyncMode.CHECKPOINT:
            yield "--privacy-enabled needs every state: a checkpoint has only that of its last block. Use FULL."
        if self.privacy.enabled and self.peers.sync_mode is SyncMode.SNAP:
            yield "--privacy-enabled needs every state: --sync-mode=SNAP fetches only a recent one. Use FULL."
        if self.privacy.enabled and self.enclave.url is not None and self.enclave.public_key_file is None:
            if not self.privacy.multi_tenancy:
                yield "Please specify Enclave public key file path to enable privacy"
            elif self.privacy.flexible:
                yield (
                    "--privacy-flexible-groups-enabled needs to know the key of this node in the enclave: give it with"
                    " --privacy-public-key-file."
                )
        if self.privacy.enabled and self.miner.min_gas_price and self.privacy.marker_key_file is None:
            yield (
                "--privacy-enabled: markers signed by random keys cannot pay for gas. Give --min-gas-price=0, or a key"
                " with --privacy-marker-transaction-signing-key-file."
            )
        if self.http.workers and self.network.name is not None:
            yield "--rpc-workers cannot be used with --network=dev, whose node edits its chain: give --genesis-file."
        if self.http.workers and self.http_auth.enabled and self.http_auth.public_key_file is None:
            yield (
                "--rpc-workers cannot be used with logins at this node, because only the process that has issued a"
                " token knows it. Use an issuer of your own: --rpc-http-authentication-jwt-public-key-file."
            )
        has_tokens = self.http_auth.enabled or self.websocket_auth.enabled
        if self.privacy.enabled and self.privacy.multi_tenancy and not has_tokens:
            yield (
                "--privacy-multi-tenancy-enabled needs --rpc-http-authentication-enabled or"
                " --rpc-ws-authentication-enabled: the token names the keys that may be used."
            )

    def exposed_signers(self) -> list[str]:
        """Return the flags of services that let other machines sign for dev accounts without a token."""
        if not self.network.dev_unlocked:
            return []
        services = (
            (self.http.enabled and not self.http_auth.enabled, self.http.host, "--rpc-http-host"),
            (self.websocket.enabled and not self.websocket_auth.enabled, self.websocket.host, "--rpc-ws-host"),
            (self.page.enabled, self.page.host, "--page-http-host"),
        )
        return [f"{flag}={host}" for is_open, host, flag in services if is_open and not is_loopback(host)]

    def warnings(self) -> Iterator[str]:
        if exposed := self.exposed_signers():
            yield (
                f"{' and '.join(exposed)} with --dev-unlocked-accounts: every machine that reaches it can sign"
                " for the dev accounts."
            )
        services = ((self.http.enabled, self.http.groups), (self.websocket.enabled, self.websocket.groups))
        if not self.permissions.is_used and any(is_on and ApiGroup.PERM in groups for is_on, groups in services):
            yield PERM_WITHOUT_PERMISSIONS
        guarded = (
            (self.http_auth.enabled, self.http.enabled or self.graphql.enabled, "--rpc-http"),
            (self.websocket_auth.enabled, self.websocket.enabled, "--rpc-ws"),
        )
        for is_asked, is_served, service in guarded:
            if is_asked and not is_served:
                yield (
                    f"{service}-authentication-enabled will have no effect unless {service}-enabled is defined on the"
                    " command line."
                )

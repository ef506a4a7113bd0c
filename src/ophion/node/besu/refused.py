"""Besu options that Ophion refuses, grouped by reason.

Each group lists values that are still accepted, because they describe what Ophion always does.
"""

from __future__ import annotations

from typing import Final

REFUSED: Final = (
    (
        "peer connections are encrypted by RLPx, not by TLS; remove it, or restrict peers by permissions",
        "false",
        """
Xp2p-tls-enabled 21.7.3 24.10.0 | p2p-tls-enabled - -
""",
    ),
    (
        "blocks are sealed with the node key; certificates are not supported",
        "false",
        """
Xpki-block-creation-enabled 21.7.3 24.7.0
""",
    ),
    (
        "the key is in a file (`--security-module=localfile`) or in a module with a PKCS #11 library",
        "localfile",
        """
security-module-provider - -
""",
    ),
    (
        "Ophion loads no plugins",
        "none",
        """
plugins 24.5.0 26.8.0
""",
    ),
    (
        "give the password in a file: --rpc-http-tls-keystore-password-file",
        "",
        """
rpc-http-tls-keystore-password - -
""",
    ),
    (
        "give the password in a file: --rpc-ws-ssl-keystore-password-file",
        "",
        """
rpc-ws-ssl-keystore-password 24.12.0 26.8.0
""",
    ),
    (
        "put key and certificate into one PEM file and give it as --rpc-ws-ssl-keystore-file",
        "",
        """
rpc-ws-ssl-cert-file 24.12.0 26.8.0 | rpc-ws-ssl-key-file 24.12.0 26.8.0
""",
    ),
    (
        "metrics are served for Prometheus; OpenTelemetry and StatsD are not supported",
        "prometheus none",
        """
metrics-protocol 20.10.1 26.8.0
""",
    ),
    (
        "work for external miners is not served; use --miner-threads",
        "false",
        """
miner-stratum-enabled 1.3.5 25.6.0
""",
    ),
    (
        "payloads are always encrypted for their participants",
        "false",
        """
privacy-unrestricted-enabled - - | privacy-unrestricted-enabled-beta - -
""",
    ),
    (
        "proof of stake is not supported",
        "false",
        """
Xmerge-support 21.10.1 22.7.7
""",
    ),
    (
        "start GoQuorum networks from a genesis file in Besu's form (docs/networks.md)",
        "false",
        """
goquorum-compatibility-enabled 20.10.2 21.1.7
""",
    ),
    (
        "use `ophion quickstart`",
        "false",
        """
Xlauncher 21.1.0 23.1.3 | Xlauncher-force 21.1.0 23.1.3
""",
    ),
    (
        "give --permissions-nodes-config-file and --permissions-accounts-config-file",
        "",
        """
permissions-config-file 1.0.0 1.0.1
""",
    ),
)

BEFORE_1_0: Final = """
accounts-whitelist - - permissions-accounts-config-file | datadir - - data-path | dev-mode - - network=dev
genesis - - genesis-file | goerli - - genesis-file | max-trailing-peers - - max-peers
metrics-listen - - metrics-host | metrics-mode - - metrics-enabled | miner-extraData - - miner-extra-data
miner-minTransactionGasPriceWei - - min-gas-price | no-discovery - - discovery-enabled=false
node-private-key - - node-private-key-file | nodes-whitelist - - permissions-nodes-config-file
ottoman - - genesis-file | p2p-listen - - p2p-interface | permissions-config-path - - permissions-nodes-config-file
private-genesis-file - - genesis-file | rinkeby - - genesis-file | ropsten - - genesis-file
rpc-api - - rpc-http-api | rpc-cors-origins - - rpc-http-cors-origins | rpc-enabled - - rpc-http-enabled
rpc-listen - - rpc-http-host | ws-api - - rpc-ws-api | ws-enabled - - rpc-ws-enabled | ws-listen - - rpc-ws-host
"""
"""Option names of Pantheon 0.x, each with its replacement."""

"""Besu options that Ophion honours, with the first and last version that had them.

Rows are `NAME FIRST LAST`, separated by bars. `- -` marks a name that users of Besu write, such as an alias, although
no release has it. A fourth field is the option of Ophion with the same effect.
"""

from __future__ import annotations

from typing import Final

SAME_NAME: Final = """
Xhelp 1.0.3 26.8.0 | api-gas-price-blocks 20.10.1 26.8.0 | api-gas-price-max 20.10.1 26.8.0
api-gas-price-percentile 20.10.1 26.8.0 | banned-node-id 1.0.0 26.8.0 | banned-node-ids 1.0.0 26.8.0
bootnodes 1.0.0 26.8.0 | color-enabled 1.5.1 26.8.0 | config-file 1.0.0 26.8.0 | data-path 1.0.0 26.8.0
discovery-enabled 1.0.0 26.8.0 | fast-sync-min-peers 1.0.3 26.1.0 | genesis-file 1.0.0 26.8.0
graphql-http-cors-origins 1.1.1 26.8.0 | graphql-http-enabled 1.1.1 26.8.0 | graphql-http-host 1.1.1 26.8.0
graphql-http-port 1.1.1 26.8.0 | graphql-mtls-enabled 25.3.0 26.8.0 | graphql-tls-enabled 25.3.0 26.8.0
graphql-tls-keystore-file 25.3.0 26.8.0 | graphql-tls-keystore-password-file 25.3.0 26.8.0
graphql-tls-truststore-file 25.3.0 26.8.0 | help 1.0.0 26.8.0 | host-allowlist 1.5.0 26.8.0
host-whitelist 1.0.0 24.12.2 | identity 1.3.3 26.8.0 | logging 1.0.0 26.8.0 | logging-format 26.8.0 26.8.0
max-peers 1.0.0 26.8.0 | metrics-categories 1.0.2 26.8.0 | metrics-category 1.0.2 26.8.0
metrics-enabled 1.0.0 26.8.0 | metrics-host 1.0.0 26.8.0 | metrics-port 1.0.0 26.8.0
metrics-push-enabled 1.0.0 26.8.0 | metrics-push-host 1.0.0 26.8.0 | metrics-push-interval 1.0.0 26.8.0
metrics-push-port 1.0.0 26.8.0 | metrics-push-prometheus-job 1.0.0 26.8.0 | min-gas-price 1.0.0 26.8.0
min-priority-fee 23.10.2 26.8.0 | miner-coinbase 1.0.0 25.11.0 | miner-enabled 1.0.0 25.11.0
miner-extra-data 1.0.0 26.8.0 | nat-method 1.2.0 26.8.0 | net-restrict 24.7.0 26.8.0 | network 1.0.0 26.8.0
network-id 1.0.0 26.8.0 | node-private-key-file 1.0.0 26.8.0 | override-genesis-config 1.2.3 26.8.0
p2p-enabled 1.0.0 26.8.0 | p2p-host 1.0.0 26.8.0 | p2p-interface 1.2.4 26.8.0 | p2p-port 1.0.0 26.8.0
permissions-accounts-config-file 1.0.2 26.8.0 | permissions-accounts-config-file-enabled 1.0.2 26.8.0
permissions-accounts-contract-address 1.1.3 25.5.0 | permissions-accounts-contract-enabled 1.1.3 25.5.0
permissions-nodes-config-file 1.0.2 26.8.0 | permissions-nodes-config-file-enabled 1.0.2 26.8.0
permissions-nodes-contract-address 1.0.2 25.5.0 | permissions-nodes-contract-enabled 1.0.2 25.5.0
permissions-nodes-contract-version 20.10.1 25.5.0 | pid-path 1.4.4 26.8.0
print-paths-and-exit 24.10.0 26.8.0 | privacy-enabled 1.0.0 25.5.0
privacy-flexible-groups-enabled 20.10.1 25.5.0 | privacy-marker-transaction-signing-key-file 1.2.2 25.5.0
privacy-multi-tenancy-enabled 1.3.8 25.5.0 | privacy-nonce-always-increments 24.7.1 25.5.0
privacy-onchain-groups-enabled 1.4.1 24.1.0 | privacy-precompiled-address 1.0.0 23.1.100
privacy-public-key-file 1.0.0 25.5.0 | privacy-tls-enabled 1.4.0 25.5.0 | privacy-tls-keystore-file 1.4.0 25.5.0
privacy-tls-keystore-password-file 1.4.0 25.5.0 | privacy-tls-known-enclave-file 1.4.0 25.5.0
privacy-url 1.0.0 25.5.0 | profile 24.2.0 26.8.0 | pruning-blocks-retained 1.2.2 24.3.3
pruning-enabled 1.2.2 24.3.3 | remote-connections-limit-enabled 1.2.0 26.8.0
remote-connections-max-percentage 1.2.0 26.8.0 | revert-reason-enabled 1.2.0 26.8.0 | rpc-gas-cap 23.10.3 26.8.0
rpc-http-api 1.0.0 26.8.0 | rpc-http-api-method-no-auth 22.1.1 26.8.0 | rpc-http-api-methods-no-auth 22.1.1 26.8.0
rpc-http-apis 1.0.0 26.8.0 | rpc-http-authentication-credentials-file 1.0.0 26.8.0
rpc-http-authentication-enabled 1.0.0 26.8.0 | rpc-http-authentication-jwt-algorithm 21.10.7 26.8.0
rpc-http-authentication-jwt-public-key-file 1.3.5 26.8.0 | rpc-http-cors-origins 1.0.0 26.8.0
rpc-http-enabled 1.0.0 26.8.0 | rpc-http-host 1.0.0 26.8.0 | rpc-http-max-active-connections 21.1.2 26.8.0
rpc-http-max-batch-size 23.1.0 26.8.0 | rpc-http-max-request-content-length 23.4.1 26.8.0
rpc-http-port 1.0.0 26.8.0 | rpc-http-tls-ca-clients-enabled 1.4.0 26.8.0
rpc-http-tls-client-auth-enabled 1.4.0 26.8.0 | rpc-http-tls-enabled 1.4.0 26.8.0
rpc-http-tls-keystore-file 1.4.0 26.8.0 | rpc-http-tls-keystore-password-file 1.4.0 26.8.0
rpc-http-tls-known-clients-file 1.4.0 26.8.0
rpc-http-tls-truststore-file 25.1.0 26.8.0 | rpc-max-logs-range 22.10.3 26.8.0
rpc-max-trace-filter-range 24.2.0 26.8.0 | rpc-tx-feecap 1.5.1 26.8.0 | rpc-ws-api 1.0.0 26.8.0
rpc-ws-api-method-no-auth 22.1.1 26.8.0 | rpc-ws-api-methods-no-auth 22.1.1 26.8.0 | rpc-ws-apis 1.0.0 26.8.0
rpc-ws-authentication-credentials-file 1.0.0 26.8.0 | rpc-ws-authentication-enabled 1.0.0 26.8.0
rpc-ws-authentication-jwt-algorithm 21.10.7 26.8.0 | rpc-ws-authentication-jwt-public-key-file 1.3.5 26.8.0
rpc-ws-enabled 1.0.0 26.8.0 | rpc-ws-host 1.0.0 26.8.0 | rpc-ws-max-active-connections 21.1.2 26.8.0
rpc-ws-max-frame-size 22.1.0 26.8.0 | rpc-ws-port 1.0.0 26.8.0 | rpc-ws-ssl-client-auth-enabled 24.12.0 26.8.0
rpc-ws-ssl-enabled 24.12.0 26.8.0 | rpc-ws-ssl-keystore-file 24.12.0 26.8.0
rpc-ws-ssl-keystore-password-file 24.12.0 26.8.0 | rpc-ws-ssl-truststore-file 24.12.0 26.8.0
security-module 1.4.5 26.8.0
static-nodes-file 20.10.4 26.8.0 | strict-tx-replay-protection-enabled 22.1.0 26.8.0 | sync-mode 1.0.0 26.8.0
target-gas-limit 1.3.0 26.8.0 | tx-pool-enable-save-restore 23.4.1 26.8.0 | tx-pool-max-size 1.0.2 26.8.0
tx-pool-price-bump 1.4.6 26.8.0 | tx-pool-retention-hours 1.1.1 26.8.0 | version 1.0.0 26.8.0
"""

OTHER_NAME: Final = """
Xdns-enabled 1.5.3 26.8.0 dns-enabled | Xdns-update-enabled 1.5.3 26.8.0 dns-update-enabled
Xpruning-blocks-retained 1.3.5 1.4.0 pruning-blocks-retained
Xqbft-enable-early-round-change 25.2.0 26.8.0 bft-early-round-change
Xrpc-http-authentication-jwt-algorithm - - rpc-http-authentication-jwt-algorithm
Xrpc-ws-authentication-jwt-algorithm - - rpc-ws-authentication-jwt-algorithm | banned-nodeids - - banned-node-ids
force-color-enabled - - color-enabled | gas-cap - - rpc-gas-cap
limit-remote-wire-connections-enabled - - remote-connections-limit-enabled
max-remote-connections-percentage - - remote-connections-max-percentage
metrics-prometheus-job - - metrics-push-prometheus-job | orion-tls-enabled - - privacy-tls-enabled
orion-tls-keystore-file - - privacy-tls-keystore-file
orion-tls-keystore-password-file - - privacy-tls-keystore-password-file
orion-tls-known-servers-file - - privacy-tls-known-enclave-file | p2p-peer-upper-bound 22.7.1 26.8.0 max-peers
permissions-accounts-enabled 1.0.0 1.0.1 permissions-accounts-config-file-enabled
permissions-nodes-enabled 1.0.0 1.0.1 permissions-nodes-config-file-enabled
plugin-localfile-security-module-private-key-file - - node-private-key-file
plugin-securitymodule-bouncycastle-private-key-file - - node-private-key-file
privacy-nonce-always-increment - - privacy-nonce-always-increments
privacy-nonce-incrementation-enabled - - privacy-nonce-always-increments
privacy-tls-known-servers-file - - privacy-tls-known-enclave-file
remote-connections-percentage - - remote-connections-max-percentage
require-tx-replay-protection - - strict-tx-replay-protection-enabled
rpc-http-authentication-public-key-file 1.3.5 26.8.0 rpc-http-authentication-jwt-public-key-file
rpc-max-active-filters 26.7.1 26.8.0 rpc-max-filters
rpc-require-chainid-in-txs - - strict-tx-replay-protection-enabled
rpc-ws-authentication-public-key-file 1.3.5 26.8.0 rpc-ws-authentication-jwt-public-key-file
rpc-ws-max-active-subscriptions 26.7.1 26.8.0 rpc-ws-max-subscriptions
rpc-ws-ssl-trustcert-file 24.12.0 26.8.0 rpc-ws-ssl-truststore-file
tx-pool-enable-save - - tx-pool-enable-save-restore
"""

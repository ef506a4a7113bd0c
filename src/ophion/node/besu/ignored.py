"""Besu options that Ophion accepts without effect, grouped by the reason shown in the warning."""

from __future__ import annotations

from typing import Final

IGNORED: Final = (
    (
        "peer connections are encrypted by RLPx, not by TLS",
        """
Xp2p-tls-clienthello-sni 23.4.1 24.10.0 | Xp2p-tls-crl-file 21.7.3 24.10.0 | Xp2p-tls-keystore-file 21.7.3 24.10.0
Xp2p-tls-keystore-password-file 21.7.3 24.10.0 | Xp2p-tls-keystore-type 21.7.3 24.10.0
Xp2p-tls-truststore-file 21.7.3 24.10.0 | Xp2p-tls-truststore-password-file 21.7.3 24.10.0
Xp2p-tls-truststore-type 21.7.3 24.10.0 | p2p-tls-crl-file - - | p2p-tls-keystore-file - -
p2p-tls-keystore-password-file - - | p2p-tls-keystore-type - - | p2p-tls-truststore-file - -
p2p-tls-truststore-password-file - - | p2p-tls-truststore-type - -
""",
    ),
    (
        "blocks are sealed with the node key; certificates are not supported",
        """
Xpki-block-creation-crl-file 21.7.3 24.7.0 | Xpki-block-creation-keystore-certificate-alias 21.7.3 24.7.0
Xpki-block-creation-keystore-file 21.7.3 24.7.0 | Xpki-block-creation-keystore-password-file 21.7.3 24.7.0
Xpki-block-creation-keystore-type 21.7.3 24.7.0 | Xpki-block-creation-truststore-file 21.7.3 24.7.0
Xpki-block-creation-truststore-password-file 21.7.3 24.7.0 | Xpki-block-creation-truststore-type 21.7.3 24.7.0
""",
    ),
    (
        "the database is LMDB; RocksDB settings have nothing to act on",
        """
Xplugin-rocksdb-background-thread-count 1.3.2 26.8.0
Xplugin-rocksdb-blob-garbage-collection-age-cutoff 25.6.0 26.8.0
Xplugin-rocksdb-blob-garbage-collection-force-threshold 25.6.0 26.8.0
Xplugin-rocksdb-blockchain-blob-garbage-collection-enabled 25.6.0 26.8.0
Xplugin-rocksdb-cache-capacity 1.3.2 26.8.0 | Xplugin-rocksdb-high-spec-enabled 22.7.3 26.8.0
Xplugin-rocksdb-max-background-compactions 1.3.2 23.1.100 | Xplugin-rocksdb-max-open-files 1.3.2 26.8.0
Xplugin-rocksdb-read-cache-snapshots-enabled 25.6.0 26.8.0 | Xrocksdb-background-thread-count 1.1.1 1.3.1
Xrocksdb-cache-capacity 1.1.0 1.3.1 | Xrocksdb-max-background-compactions 1.1.1 1.3.1
Xrocksdb-max-open-files 1.0.3 1.3.1 | key-value-storage 1.2.4 26.8.0
""",
    ),
    (
        "there is one storage format, which keeps every state; --state-history limits it",
        """
Xbonsai-archive-state-proofs-enabled - - | Xbonsai-code-using-code-hash-enabled 24.2.0 26.8.0
Xbonsai-cross-block-cache-account-max-size 26.6.0 26.8.0
Xbonsai-cross-block-cache-enabled 26.6.0 26.8.0 | Xbonsai-cross-block-cache-storage-max-size 26.6.0 26.8.0
Xbonsai-full-flat-db-enabled 24.5.2 26.8.0 | Xbonsai-limit-trie-logs-enabled 24.2.0 25.6.0
Xbonsai-maximum-back-layers-to-load 21.1.5 22.1.2 | Xbonsai-parallel-tx-processing-enabled 24.7.1 25.11.0
Xbonsai-trie-log-pruning-enabled 23.10.3 25.6.0 | Xbonsai-trie-log-pruning-limit 23.10.3 24.1.2
Xbonsai-trie-log-retention-threshold 23.10.3 24.1.2 | Xbonsai-trie-logs-pruning-window-size 24.2.0 25.6.0
Xbonsai-use-snapshots 22.10.0 23.1.3 | Xchain-pruning-bals-retained 26.2.0 26.8.0
Xchain-pruning-blocks-retained 23.1.0 26.8.0 | Xchain-pruning-blocks-retained-limit 24.6.0 26.1.0
Xchain-pruning-enabled 23.1.0 26.8.0 | Xchain-pruning-frequency 23.1.0 26.8.0
Xchain-pruning-retained-minimum 26.2.0 26.8.0 | Xdata-storage-format 20.10.3 22.1.2
Xpruning-block-confirmations 1.3.5 1.4.0 | bonsai-cache-enabled - - | bonsai-historical-block-limit 23.4.0 26.8.0
bonsai-limit-trie-logs-enabled 24.6.0 26.8.0 | bonsai-maximum-back-layers-to-load 22.1.3 25.8.0
bonsai-parallel-state-root-computation-enabled 26.1.0 26.8.0 | bonsai-parallel-tx-processing-enabled 25.7.0 26.8.0
bonsai-trie-logs-pruning-batch-size - - | bonsai-trie-logs-pruning-window-size 24.6.0 26.8.0
bonsai-trie-logs-retention-limit - - | data-storage-format 22.1.3 26.8.0
genesis-state-hash-cache-enabled 24.5.0 26.8.0 | hash-preimage-storage-enabled - -
pruning-block-confirmations 1.2.2 24.3.3 | receipt-compaction-enabled 24.3.1 26.8.0
tx-sender-nonce-index-enabled 26.6.1 26.8.0
""",
    ),
    (
        "caches have a fixed size",
        """
Xcontract-code-cache-weight-kb - - | Xevm-jumpdest-cache-weight-kb 21.10.0 26.8.0
cache-last-block-headers 25.10.0 26.8.0 | cache-last-block-headers-preload-enabled 25.10.0 26.8.0
cache-last-blocks 23.10.1 26.8.0 | cache-precompiles 25.4.0 26.8.0 | contract-code-cache-weight-kb - -
preload-block-headers-cache-enabled - -
""",
    ),
    (
        "logs are indexed by the database; there is no separate bloom cache",
        """
auto-log-bloom-caching-enabled 1.4.0 26.8.0 | auto-logs-bloom-indexing-enabled - -
""",
    ),
    (
        "the EVM and its cryptography have one implementation",
        """
Xaltbn128-native-enabled 1.4.4 26.8.0 | Xblake2bf-native-enabled 22.7.3 26.8.0
Xenable-extra-debug-tracers 25.8.0 25.12.0 | Xevm-go-fast 26.4.0 26.8.0 | Xevm-optimized-opcodes 25.10.0 26.8.0
Xevm-v2 26.4.0 26.8.0 | Xevm-worldstate-update-mode 23.10.2 26.8.0 | Xmodexp-native-enabled 22.10.3 26.8.0
Xp256verify-native-enabled 25.8.0 26.8.0 | Xsecp-native-enabled 21.7.3 26.8.0
Xsecp256k1-native-enabled 1.4.4 26.8.0 | kzg-trusted-setup 23.1.1 26.8.0
""",
    ),
    (
        "blocks are fetched and executed in full, from the first peer on",
        """
Xcheckpoint-post-merge-enabled 23.1.0 26.8.0 | Xhistory-expiry-prune 25.6.0 25.11.0
Xpeertask-system-enabled 24.10.0 26.4.0 | Xpre-merge-pruning-quantity 25.6.0 26.8.0 | Xsnap2-enabled 26.6.0 26.8.0
Xsnapsync-bft-enabled 24.7.1 25.6.0 | Xsnapsync-server-enabled 24.3.1 25.11.0
Xsnapsync-server-max-concurrent-requests 26.8.0 26.8.0
Xsnapsync-server-max-concurrent-requests-per-peer 26.8.0 26.8.0
Xsnapsync-synchronizer-bytecode-count-per-request 22.4.0 26.8.0
Xsnapsync-synchronizer-flat-account-healed-count-per-request 23.4.2 26.8.0
Xsnapsync-synchronizer-flat-db-healing-enabled 23.4.2 25.5.0
Xsnapsync-synchronizer-flat-slot-healed-count-per-request 23.4.2 26.8.0
Xsnapsync-synchronizer-pivot-block-check-interval-millis 26.8.0 26.8.0
Xsnapsync-synchronizer-pivot-block-distance-before-caching 22.4.0 26.8.0
Xsnapsync-synchronizer-pivot-block-window-validity 22.4.0 26.8.0
Xsnapsync-synchronizer-pre-merge-headers-only-enabled 25.5.0 25.11.0
Xsnapsync-synchronizer-storage-count-per-request 22.4.0 26.8.0
Xsnapsync-synchronizer-transaction-indexing-enabled 25.3.0 25.5.0
Xsnapsync-synchronizer-trienode-count-per-request 22.4.0 26.8.0
Xsynchronizer-backward-headers-download-step-timeout-millis 26.2.0 26.8.0
Xsynchronizer-block-propagation-range 1.0.3 26.8.0 | Xsynchronizer-bodies-download-step-timeout-millis 26.4.0 26.8.0
Xsynchronizer-computation-parallelism 1.0.3 26.8.0 | Xsynchronizer-downloader-bodies-request-size 26.2.0 26.8.0
Xsynchronizer-downloader-chain-segment-size 1.0.3 26.8.0
Xsynchronizer-downloader-chain-segment-timeouts-permitted 1.0.3 1.1.0
Xsynchronizer-downloader-change-target-threshold-by-height 1.0.3 26.8.0
Xsynchronizer-downloader-change-target-threshold-by-td 1.0.3 26.8.0
Xsynchronizer-downloader-checkpoint-RETRIES 24.5.0 26.8.0
Xsynchronizer-downloader-checkpoint-timeouts-permitted 1.0.3 26.8.0
Xsynchronizer-downloader-header-request-size 1.0.3 26.8.0 | Xsynchronizer-downloader-parallelism 1.0.3 26.8.0
Xsynchronizer-fast-sync-full-validation-rate 1.0.3 26.1.0 | Xsynchronizer-fast-sync-pivot-distance 1.0.3 26.1.0
Xsynchronizer-header-download-parallelism-factor 26.2.0 26.8.0
Xsynchronizer-pipeline-full-sync-enabled 1.1.0 1.1.0 | Xsynchronizer-pivot-distance 26.2.0 26.8.0
Xsynchronizer-receipts-download-step-timeout-millis 26.2.0 26.8.0
Xsynchronizer-transactions-parallelism 1.0.3 26.8.0 | Xsynchronizer-world-state-hash-count-per-request 1.0.3 26.8.0
Xsynchronizer-world-state-max-requests-without-progress 1.0.3 26.8.0
Xsynchronizer-world-state-min-millis-before-stalling 1.0.3 26.8.0
Xsynchronizer-world-state-request-parallelism 1.0.3 26.8.0 | Xsynchronizer-world-state-task-cache-size 1.2.1 26.8.0
checkpoint 26.8.0 26.8.0 | enable-pre-merge-block-pruning - - | era1-data-path - - | era1-data-uri 25.8.0 26.8.0
era1-import-prepipeline-concurrency 25.8.0 26.8.0 | era1-import-prepipeline-enabled 25.8.0 26.8.0
fast-sync-max-wait-time 1.0.3 1.0.3 | history-expiry-prune 25.7.0 26.8.0 | peertask-system-enabled - -
pre-merge-block-pruner-range - - | pre-merge-block-pruner-sleep-time - - | snapsync-server-enabled 25.7.0 26.8.0
snapsync-synchronizer-pre-checkpoint-headers-only-enabled 25.7.0 26.8.0
snapsync-synchronizer-transaction-indexing-enabled 25.6.0 26.8.0 | sync-min-peers 24.1.1 26.8.0
""",
    ),
    (
        "block access lists are not used",
        """
Xapi-block-access-list-enabled 25.9.0 25.11.0 | Xbal-api-enabled 25.12.0 26.1.0
Xbal-lenient-on-state-root-mismatch 25.12.0 26.6.0 | Xbal-log-bals-on-mismatch 25.12.0 26.8.0
Xbal-optimization-enabled 25.12.0 26.2.0 | Xbal-perfect-parallelization-enabled 26.1.0 26.8.0
Xbal-processing-timeout 26.1.0 26.5.0 | Xbal-state-root-enabled 26.5.0 26.8.0
Xbal-state-root-timeout 25.12.0 26.5.0 | Xbal-trust-state-root 25.12.0 26.6.0
""",
    ),
    (
        "the wire protocol sets these limits itself",
        """
Xbft-legacy-protocol-encoding 26.6.0 26.8.0 | Xeth-65-enabled 1.4.4 21.1.5 | Xeth-capability-max 22.10.3 26.8.0
Xeth-capability-min 22.10.3 26.8.0 | Xeth-max-message-size 22.7.0 26.8.0
Xeth-max-transactions-message-size 25.12.0 26.8.0 | Xeth65-tx-announced-buffering-period-milliseconds 20.10.2 26.8.0
Xewp-max-get-bodies 1.0.3 26.8.0 | Xewp-max-get-headers 1.0.3 26.8.0 | Xewp-max-get-node-data 1.0.3 26.4.0
Xewp-max-get-pooled-transactions 1.4.3 26.8.0 | Xewp-max-get-receipts 1.0.3 26.8.0
Xincoming-tx-messages-keep-alive-seconds 1.1.4 26.8.0 | Xmax-send-queue-size-per-peer 26.4.0 26.8.0
Xmax-tracked-seen-txs 26.4.0 26.8.0 | Xmax-tracked-seen-txs-per-peer 25.4.1 26.8.0
Xpeer-tracker-forget-evicted-txs 25.4.1 26.8.0 | compatibility-eth64-forkid-enabled 20.10.1 25.4.0
""",
    ),
    (
        "peers are found, dialled and kept by built-in rules",
        """
Xfilter-on-enr-fork-id 22.10.1 24.1.2 | Xp2p-check-maintained-connections-frequency 1.1.4 26.8.0
Xp2p-dns-discovery-server 22.1.0 26.8.0 | Xp2p-initiate-connections-frequency 1.1.4 26.8.0
Xp2p-peer-lower-bound 22.7.1 24.6.0 | Xp2p-peer-task-timeout 26.2.0 26.8.0 | filter-on-enr-fork-id 24.2.0 26.8.0
fraction-remote-connections-allowed - - | p2p-host-share-via-rlpx-enabled - -
poa-bootnodes-maintain-connection - - | poa-discovery-retry-bootnodes 24.7.1 26.8.0
random-peer-priority-enabled 20.10.1 26.8.0
""",
    ),
    (
        "peers are found by discovery v4 and --bootnodes, not by DNS or discovery v5",
        """
Xv5-discovery-enabled 22.7.0 26.7.1 | Xv5-discovery-interval-seconds 26.4.0 26.8.0
Xv5-discovery-timeout-seconds 26.4.0 26.8.0 | Xv5-minimum-peer-ratio 26.4.0 26.8.0 | discovery-dns-url 21.1.4 26.8.0
discovery-mode 26.8.0 26.8.0 | dns-discovery-url - -
""",
    ),
    (
        "one address is announced to peers; set --p2p-host and --p2p-port",
        """
p2p-discovery-port - - | p2p-discovery-port-ipv6 - - | p2p-host-ipv6 26.2.0 26.8.0
p2p-interface-ipv6 26.2.0 26.8.0 | p2p-ipv6-outbound-enabled 26.2.0 26.8.0 | p2p-outbound-ip-version - -
p2p-port-ipv6 26.2.0 26.8.0
""",
    ),
    (
        "set --p2p-host to the address that peers reach",
        """
Xnat-kube-pod-name 1.5.0 1.5.0 | Xnat-kube-service-name 1.5.1 25.2.2 | Xnat-kube-service-namespace - -
Xnat-manager-pod-name - - | Xnat-method-fallback-enabled 1.5.1 26.8.0 | nat-external-ip-usage-enabled - -
""",
    ),
    (
        "there is one transaction pool, ordered by price, without local priority",
        """
Xlayered-tx-pool 23.4.1 23.7.3 | Xlayered-tx-pool-layer-max-capacity 23.4.1 23.7.3
Xlayered-tx-pool-max-future-by-sender 23.4.1 23.7.3 | Xlayered-tx-pool-max-prioritized 23.4.1 23.7.3
Xtx-pool-disable-sender-grouping - - | Xtx-pool-save-restore-timeout 26.4.0 26.8.0 | p2p-tx-feecap 26.8.0 26.8.0
tx-pool 23.10.0 26.8.0 | tx-pool-allow-list - - | tx-pool-blob-price-bump 24.5.0 26.8.0
tx-pool-disable-locals 23.4.1 25.5.0 | tx-pool-disable-sender-grouping - -
tx-pool-enable-balance-check 25.10.0 26.8.0 | tx-pool-forget-invalid-txn-mins - - | tx-pool-future-max - -
tx-pool-future-max-by-account 22.7.2 23.1.3 | tx-pool-hashes-max-size 1.4.3 22.7.7 | tx-pool-keep-alive-seconds - -
tx-pool-layer-max-capacity 23.10.0 26.8.0 | tx-pool-limit-by-account-percentage 22.7.3 26.8.0
tx-pool-max-future-by-sender 23.10.0 26.8.0 | tx-pool-max-prioritized 23.10.0 26.8.0
tx-pool-max-prioritized-by-type 24.5.0 26.8.0 | tx-pool-min-gas-price 23.10.3 26.8.0
tx-pool-min-score 24.9.1 26.8.0 | tx-pool-no-late-funding - - | tx-pool-no-local-priority 23.10.1 26.8.0
tx-pool-priority-senders 23.10.1 26.8.0 | tx-pool-reject-list - - | tx-pool-save-file 23.4.1 26.8.0
tx-pool-shuffle-senders - -
""",
    ),
    (
        "the producer limits its own time",
        """
Xblock-txs-selection-max-time 23.10.2 24.1.0 | Xmax-ommers-depth 21.7.3 25.11.0
Xpoa-block-txs-selection-max-time 23.10.2 24.1.0 | block-txs-selection-max-time 24.1.1 26.8.0 | max-blobs - -
max-blobs-per-block 26.4.0 26.8.0 | max-blobs-per-transaction 26.4.0 26.8.0 | min-block-occupancy-ratio 1.4.5 26.8.0
plugin-block-txs-selection-max-time 25.9.0 26.8.0 | poa-block-txs-selection-max-time 24.1.1 26.8.0
""",
    ),
    (
        "there is no proof-of-work service; the node mines with --miner-threads",
        """
Xminer-pow-job-ttl 21.7.3 25.11.0 | Xminer-remote-sealers-hashrate-ttl 1.5.0 25.11.0
Xminer-remote-sealers-limit 1.5.0 25.11.0 | Xminer-stratum-extranonce 1.3.5 25.6.0 | cpu-miner-enabled - -
miner-remote-sealers-limit - - | miner-stratum-host 1.3.5 25.6.0 | miner-stratum-port 1.3.5 25.6.0
stratum-host - - | stratum-network-interface - - | stratum-port - -
""",
    ),
    (
        "there is no consensus client: Ophion runs private networks",
        """
Xengine-rollup-extension-enabled - - | Xpos-block-creation-max-time 22.10.0 26.8.0
Xpos-block-creation-repetition-min-duration 23.1.1 26.8.0 | Xpos-block-finalization-timeout-ms 25.11.0 26.8.0
Xpos-slot-duration 25.10.0 26.8.0 | engine-host-allowlist 22.1.1 26.8.0 | engine-jwt-disabled 22.4.2 26.8.0
engine-jwt-enabled 22.1.2 24.1.2 | engine-jwt-secret 22.1.2 26.8.0 | engine-rollup-extension-enabled - -
engine-rpc-enabled 22.4.1 26.8.0 | engine-rpc-http-port 22.1.1 26.8.0 | engine-rpc-port 22.4.1 26.8.0
engine-rpc-ws-port 22.1.2 22.4.0
""",
    ),
    (
        "nothing is reported to an ethstats server; use --metrics-enabled",
        """
Xethstats 1.5.2 21.1.7 | Xethstats-contact 1.5.2 21.1.7 | ethstats 21.7.0 26.8.0 | ethstats-cacert - -
ethstats-cacert-file 23.4.0 26.8.0 | ethstats-contact 21.7.0 26.8.0 | ethstats-report-interval 25.10.0 26.8.0
""",
    ),
    (
        "no plugins are loaded",
        """
Xplugin-auto-enabled - - | Xplugins-auto-loading-enabled - - | Xplugins-external-enabled 24.9.0 26.8.0
Xprivacy-plugin-enabled 21.7.1 25.5.0 | continue-on-plugin-error 26.1.0 26.8.0
plugin-continue-on-error 24.10.0 26.8.0 | plugins-verification-mode 26.1.0 26.8.0
""",
    ),
    (
        "gas price suggestions follow --api-gas-price-blocks, -percentile and -max",
        """
api-gas-and-priority-fee-limiting-enabled 23.10.3 26.8.0
api-gas-and-priority-fee-lower-bound-coefficient 23.10.3 26.8.0
api-gas-and-priority-fee-upper-bound-coefficient 23.10.3 26.8.0
""",
    ),
    (
        "requests are limited by --rpc-max-… and --rpc-…-timeout-seconds",
        """
Xhttp-streaming-timeout-seconds 26.4.0 26.8.0 | Xhttp-timeout-seconds 1.4.6 26.8.0
Xws-timeout-seconds 1.5.0 26.8.0 | graphql-http-max-active-connections - - | graphql-max-blocks-range 26.8.0 26.8.0
rpc-filter-timeout-seconds 26.7.1 26.8.0 | rpc-http-max-resource-intensive-per-batch-size - -
rpc-max-trace-range - - | rpc-max-trace-steps 26.8.0 26.8.0 | rpc-ws-refresh-delay 1.0.0 1.0.1
ws-refresh-delay - -
""",
    ),
    (
        "there is no such service; use --rpc-http-enabled or --rpc-ws-enabled",
        """
Xin-process-rpc-api 24.8.0 26.8.0 | Xin-process-rpc-apis 24.8.0 26.8.0 | Xin-process-rpc-enabled 24.8.0 26.8.0
Xrpc-ipc-api 22.4.0 26.8.0 | Xrpc-ipc-apis 22.4.0 26.8.0 | Xrpc-ipc-enabled 22.4.0 26.8.0
Xrpc-ipc-path 22.4.0 26.8.0
""",
    ),
    (
        "answers are compact JSON",
        """
json-pretty-print-enabled 23.7.1 26.8.0 | pretty-json-enabled - -
""",
    ),
    (
        "eth_estimateGas returns the exact limit",
        """
estimate-gas-tolerance-ratio 25.5.0 26.8.0
""",
    ),
    (
        "TLS 1.2 and 1.3 with the cipher suites of OpenSSL are offered",
        """
rpc-http-tls-cipher-suite 22.1.0 26.8.0 | rpc-http-tls-cipher-suites 22.1.0 26.8.0 | rpc-http-tls-ciphersuites - -
rpc-http-tls-protocol 22.1.0 26.8.0 | rpc-http-tls-protocols 22.1.0 26.8.0
""",
    ),
    (
        "truststores are PEM files without a password, keystores are recognised by their content",
        """
graphql-tls-truststore-password-file 25.3.0 26.8.0 | rpc-http-tls-truststore-password - -
rpc-http-tls-truststore-password-file 25.1.0 26.8.0 | rpc-ws-ssl-keystore-type 24.12.0 26.8.0
rpc-ws-ssl-truststore-password 24.12.0 26.8.0 | rpc-ws-ssl-truststore-password-file 24.12.0 26.8.0
rpc-ws-ssl-truststore-type 24.12.0 26.8.0
""",
    ),
    (
        "forks are switched on by the genesis file",
        """
Xberlin-enabled 1.4.4 20.10.4 | Xeip1559-basefee-max-change-denominator 1.4.5 21.7.2
Xeip1559-decay-range 1.4.5 1.5.2 | Xeip1559-enabled 1.4.3 21.1.5 | Xeip1559-initial-base-fee 1.4.5 21.7.2
Xeip1559-migration-duration-in-blocks 1.5.3 20.10.0 | Xeip1559-per-tx-gas-limit 1.4.5 1.5.2
Xeip1559-slack-coefficient 1.4.5 21.7.2 | Xeip1559-target-gas-used 1.4.5 1.5.2
""",
    ),
    (
        "metrics are served for Prometheus",
        """
Xmetrics-idle-timeout 21.7.4 26.8.0 | Xmetrics-timers-enabled 1.2.1 26.8.0 | enable-execution-metrics - -
""",
    ),
    (
        "the log shows it at --logging=DEBUG",
        """
reorg-logging-threshold 1.5.4 26.8.0 | slow-block-threshold - -
""",
    ),
    (
        "a database of a newer version is always refused",
        """
allow-downgrade - - | version-compatibility-protection 24.2.0 26.8.0
""",
    ),
    (
        "peers are not asked for particular blocks",
        """
required-block 1.3.1 26.8.0 | required-blocks 1.3.1 26.8.0
""",
    ),
    (
        "private state needs no migration",
        """
privacy-enable-database-migration 1.4.0 25.5.0
""",
    ),
    (
        "transactions without a chain id are accepted unless --strict-tx-replay-protection-enabled",
        """
rpc-allow-unprotected-txs - -
""",
    ),
    (
        "private transactions are always validated",
        """
privacy-validate-private-transactions - -
""",
    ),
    (
        "the experiment has ended",
        """
crosschain-config - - | crosschain-enabled - - | sidechain-nodeCount - - | sidechain-nodeNum - -
""",
    ),
    (
        "keys of clients are not needed to call an enclave",
        """
orion-tls-known-clients-file - -
""",
    ),
)

"""Options that the original client listed as unstable (`--X…`): accepted, and without effect here.

They tune its downloader, its wire protocol and its storage engine, none of which this node has.
"""

from __future__ import annotations

from typing import Any

from ophion.runtime.options import Options, option


def _unused(flag: str, default: Any) -> Any:
    return option(flag, default=default, hidden=True, help="Accepted for old command lines; has no effect.")


class UnstableConfig(Options):
    """Unstable options."""

    max_get_headers: int = _unused("--Xewp-max-get-headers", 192)
    max_get_bodies: int = _unused("--Xewp-max-get-bodies", 128)
    max_get_receipts: int = _unused("--Xewp-max-get-receipts", 256)
    max_get_node_data: int = _unused("--Xewp-max-get-node-data", 384)
    metrics_timers: bool = _unused("--Xmetrics-timers-enabled", True)
    p2p_initiate: int = _unused("--Xp2p-initiate-connections-frequency", 30)
    p2p_maintained: int = _unused("--Xp2p-check-maintained-connections-frequency", 60)
    tx_keep_alive: int = _unused("--Xincoming-tx-messages-keep-alive-seconds", 60)
    propagation_range: str = _unused("--Xsynchronizer-block-propagation-range", "-10..30")
    target_by_height: int = _unused("--Xsynchronizer-downloader-change-target-threshold-by-height", 200)
    target_by_td: int = _unused("--Xsynchronizer-downloader-change-target-threshold-by-td", 10**18)
    header_request_size: int = _unused("--Xsynchronizer-downloader-header-request-size", 200)
    checkpoint_timeouts: int = _unused("--Xsynchronizer-downloader-checkpoint-timeouts-permitted", 5)
    chain_segment_size: int = _unused("--Xsynchronizer-downloader-chain-segment-size", 200)
    downloader_parallelism: int = _unused("--Xsynchronizer-downloader-parallelism", 4)
    transactions_parallelism: int = _unused("--Xsynchronizer-transactions-parallelism", 2)
    computation_parallelism: int | None = _unused("--Xsynchronizer-computation-parallelism", None)
    pivot_distance: int = _unused("--Xsynchronizer-fast-sync-pivot-distance", 50)
    full_validation_rate: float = _unused("--Xsynchronizer-fast-sync-full-validation-rate", 0.1)
    hash_count: int = _unused("--Xsynchronizer-world-state-hash-count-per-request", 384)
    request_parallelism: int = _unused("--Xsynchronizer-world-state-request-parallelism", 10)
    without_progress: int = _unused("--Xsynchronizer-world-state-max-requests-without-progress", 1000)
    before_stalling: int = _unused("--Xsynchronizer-world-state-min-millis-before-stalling", 300_000)
    task_cache: int = _unused("--Xsynchronizer-world-state-task-cache-size", 1_000_000)
    rocksdb_open_files: int = _unused("--Xrocksdb-max-open-files", 1024)
    rocksdb_cache: int = _unused("--Xrocksdb-cache-capacity", 8_388_608)
    rocksdb_compactions: int = _unused("--Xrocksdb-max-background-compactions", 4)
    rocksdb_threads: int = _unused("--Xrocksdb-background-thread-count", 4)

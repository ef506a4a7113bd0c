"""`Category`: the subjects of metrics. Options name them, so every start imports this file, but not all metrics."""

from __future__ import annotations

from enum import Enum


class Category(Enum):
    """Subject of a metric; each category can be switched off."""

    BLOCKCHAIN = "blockchain"
    ETHEREUM = "ethereum"
    EXECUTORS = "executors"
    NETWORK = "network"
    PEERS = "peers"
    PERMISSIONING = "permissioning"
    PROCESS = "process"
    PRUNER = "pruner"
    PYTHON = "python"
    RPC = "rpc"
    SYNCHRONIZER = "synchronizer"
    TRANSACTION_POOL = "transaction_pool"
    JVM = "jvm"
    KVSTORE_ROCKSDB = "kvstore_rocksdb"
    KVSTORE_ROCKSDB_STATS = "kvstore_rocksdb_stats"

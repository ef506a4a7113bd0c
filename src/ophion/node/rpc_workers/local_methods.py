"""Methods that a worker answers from the database. The node answers all other methods.

A method belongs here if its result depends only on the chain and on options. A worker forwards requests that turn out
to need more, such as reads at `pending` and transactions that are not mined (node_state.py).
"""

from __future__ import annotations

from typing import Final

LOCAL_METHODS: Final = frozenset(
    {
        # eth_state
        "eth_getBalance",
        "eth_getCode",
        "eth_getProof",
        "eth_getStorageAt",
        "eth_getStorageValues",
        "eth_getTransactionCount",
        # eth_blocks
        "eth_getBlockByHash",
        "eth_getBlockByNumber",
        "eth_getBlockReceipts",
        "eth_getBlockTransactionCountByHash",
        "eth_getBlockTransactionCountByNumber",
        "eth_getRawTransactionByBlockHashAndIndex",
        "eth_getRawTransactionByBlockNumberAndIndex",
        "eth_getRawTransactionByHash",
        "eth_getTransactionByBlockHashAndIndex",
        "eth_getTransactionByBlockNumberAndIndex",
        "eth_getTransactionByHash",
        "eth_getTransactionReceipt",
        "eth_getUncleByBlockHashAndIndex",
        "eth_getUncleByBlockNumberAndIndex",
        "eth_getUncleCountByBlockHash",
        "eth_getUncleCountByBlockNumber",
        # eth_transactions
        "eth_call",
        "eth_createAccessList",
        "eth_estimateGas",
        # eth_filters
        "eth_getLogs",
        # eth_node, client
        "eth_blockNumber",
        "eth_chainId",
        "net_version",
        "web3_clientVersion",
        "web3_sha3",
        # debug_trace, trace
        "debug_traceBlockByHash",
        "debug_traceBlockByNumber",
        "debug_traceCall",
        "debug_traceTransaction",
        "trace_block",
        "trace_call",
        "trace_get",
        "trace_replayBlockTransactions",
        "trace_replayTransaction",
        "trace_transaction",
    }
)

"""The methods, one file per topic; `all_methods` is the registry of every method the node knows.

client       web3_*, net_*, rpc_*              admin      admin_*
eth_node     chain id, prices, sync status     eth_state  balances, code, storage, proofs
eth_blocks   blocks, transactions, receipts    eth_tx     sending, calls, estimates
eth_filters  logs, filters, subscriptions      mining     miner_*, coinbase, external miners
poa          clique_*, *_getSignerMetrics      txpool     txpool_*
bft          ibft_*, qbft_*                    perm       perm_*
perm_reasons  perm_explain, perm_rehearse, txpool_explain
debug        debug_*                           debug_trace  debug_trace*
trace        trace_*                           simulate   eth_simulateV1
eea          private transactions and groups   priv       private states and logs
eth_accounts what a node with keys can do, and filling in what a transaction lacks
"""

from ophion.rpc.language.registry import Registry
from ophion.rpc.methods import (
    admin,
    bft,
    client,
    debug,
    debug_trace,
    eea,
    eth_accounts,
    eth_blocks,
    eth_filters,
    eth_node,
    eth_state,
    eth_tx,
    mining,
    perm,
    perm_reasons,
    poa,
    priv,
    simulate,
    trace,
    txpool,
)

__all__ = ["all_methods"]


def all_methods() -> Registry:
    """Every method, whichever groups are on."""
    return Registry.of(
        (
            admin,
            bft,
            client,
            debug,
            debug_trace,
            eea,
            eth_accounts,
            eth_blocks,
            eth_filters,
            eth_node,
            eth_state,
            eth_tx,
            mining,
            perm,
            perm_reasons,
            poa,
            priv,
            simulate,
            trace,
            txpool,
        )
    )

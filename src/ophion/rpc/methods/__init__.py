"""JSON-RPC methods, one file per topic; `all_methods` is the registry of all methods.

client              web3_*, net_*, rpc_*
admin               admin_*
log_bloom_cache     admin_*Cache of Besu
eth_node            chain id, prices, sync status
eth_state           balances, code, storage, proofs
eth_blocks          blocks, transactions, receipts
eth_transactions    sending, calls, estimates
eth_filters         logs, filters, subscriptions
eth_accounts        signing accounts of the node; fills in missing transaction fields
simulate            eth_simulateV1
miner_data          eth_getMinerData*
proof_bundle        eth_getProofBundle
mining              miner_*, coinbase, external miners
clique              clique_*, *_getSignerMetrics
bft                 ibft_*, qbft_*
txpool              txpool_*
perm                perm_*
perm_explain        perm_explain, perm_dryRun, txpool_explain
debug               debug_*
debug_trace         debug_trace*
trace_files         debug_standardTrace*ToFile
chain_control       debug_setHead, debug_replayBlock, plugins_*
trace               trace_*
otterscan           ots_*, erigon_*: block explorers
priv_transactions   private transactions, their receipts and nonces (eea_*, priv_*)
priv_groups         privacy groups
priv_state          private states and logs
sql                 sql_*
dev_impersonation   transactions without signatures in a development node (anvil_*, hardhat_*)
dev_state           accounts, code, storage and the next header
dev_blocks          mining, rollback, reset (evm_*, anvil_*, hardhat_*)
dev_time            time of the chain (evm_*, anvil_*)
dev_snapshots       evm_snapshot, evm_revert
dev_pool            removes transactions from the pool
dev_node            information about the node, its logging and its fork
dev_accounts        methods of Anvil and of wallets beside the standard eth_*
dev_traces          call tree and source steps of a transaction (debug_*)
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from ophion.rpc.schema.registry import MethodFile, Registry

__all__ = ["all_methods", "method_files"]

_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "eth_node": ("eth",),
    "client": ("net", "rpc", "web3"),
    "eth_state": ("eth",),
    "eth_blocks": ("debug", "eth"),
    "eth_transactions": ("eth", "parity"),
    "eth_filters": ("eth",),
    "eth_accounts": ("eth", "personal"),
    "mining": ("eth", "miner"),
    "simulate": ("eth",),
    "txpool": ("txpool",),
    "debug": ("debug",),
    "debug_trace": ("debug",),
    "trace": ("trace",),
    "otterscan": ("erigon", "ots"),
    "trace_files": ("debug",),
    "chain_control": ("debug", "plugins"),
    "miner_data": ("eth",),
    "proof_bundle": ("eth",),
    "admin": ("admin",),
    "log_bloom_cache": ("admin",),
    "clique": ("clique", "ibft", "qbft"),
    "bft": ("ibft", "qbft"),
    "perm": ("perm",),
    "perm_explain": ("perm", "txpool"),
    "priv_transactions": ("eea", "priv"),
    "priv_groups": ("priv", "privx"),
    "priv_state": ("priv",),
    "dev_traces": ("debug",),
    "sql": ("sql",),
    "dev_snapshots": ("anvil", "evm"),
    "dev_blocks": ("anvil", "evm", "hardhat"),
    "dev_time": ("anvil", "evm"),
    "dev_state": ("anvil", "evm", "hardhat", "tenderly"),
    "dev_impersonation": ("anvil", "eth", "hardhat"),
    "dev_pool": ("anvil", "hardhat"),
    "dev_node": ("anvil", "hardhat"),
    "dev_accounts": ("anvil", "eth"),
}
"""API groups of the methods in each file. Files of one group are imported in this order, the most used first."""


def method_files() -> list[MethodFile]:
    """Return the files that declare methods."""
    return [MethodFile(f"{__name__}.{name}", groups) for name, groups in _GROUPS.items()]


@cache
def all_methods() -> Registry:
    """Return the registry of all methods, enabled or not. A file is imported when one of its methods is first used."""
    return Registry(files=method_files())

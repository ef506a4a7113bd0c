"""Ophion: an Ethereum node for private networks.

Python decides the policy, Rust does the computation. A package imports only packages below it in this list:

    cli                       command line
    sdk                       a chain inside Python, pytest and notebooks
    quickstart, bench         a network on one machine; load generator
    data, migration           the chain as tables: Parquet, data frames, SQL; chains and files of other clients
    node                      composition root: configuration to a running node
    gateway, metrics          reverse proxy with the web interface; Prometheus metrics
    rpc, graphql, web         JSON-RPC, GraphQL, files of the web interface
    enclave_http, privacy     HTTP interfaces of the embedded enclave; private transactions
    peers                     peer-to-peer network
    producer, pool            block production; transaction pool
    permissions               rules for nodes and accounts
    proofs                    proofs of transactions and accounts for auditors
    chain                     head, import, block building, queries
    consensus, chainspec      header rules, votes, state machines; genesis file to chain specification
    enclave                   private payloads and groups
    runtime                   clock, worker threads, options, logs
    abi, wallet               contract ABI: codec, interface, artifacts; signing
    native                    typed facade of the Rust extension `ophion._native`
    primitives                value types: addresses, hex, RLP, headers

`docs/architecture.md` follows a block, a transaction and a call through the files.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ophion.sdk.chain import Chain as Chain
    from ophion.sdk.errors import ChainError as ChainError
    from ophion.sdk.errors import Reverted as Reverted

__version__ = "0.1.0"

_LAZY = {"Chain": "ophion.sdk.chain", "ChainError": "ophion.sdk.errors", "Reverted": "ophion.sdk.errors"}
"""Names that `from ophion import NAME` loads at their first use. A node does not need these names, so it starts faster.
"""


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'ophion' has no attribute '{name}'")
    import gc
    from importlib import import_module

    # disable garbage collection, because it would take a fifteenth of the import time
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        found: object = getattr(import_module(module), name)
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                # move the imported objects to the oldest generation, so that the collections of young objects do not
                # visit them
                gc.freeze()
                gc.unfreeze()
            gc.enable()
    globals()[name] = found
    return found

"""Ophion: an Ethereum node for private networks.

Python holds the policy, Rust the computation. Dependencies point down this list:

    cli                       command line
    quickstart, bench         a network on one machine; load generator
    data                      the chain as tables: Parquet, data frames, SQL
    node                      composition root: configuration to a running node
    gateway, metrics          reverse proxy with the web interface; Prometheus metrics
    rpc, graphql, web         JSON-RPC, GraphQL, files of the web interface
    enclave_http, privacy     HTTP interfaces of the embedded enclave; private transactions
    peers                     peer-to-peer network
    producer, pool            block production; transaction pool
    permissions               rules for nodes and accounts
    chain                     head, import, block building, queries
    consensus, chainspec      header rules, votes, state machines; genesis file to chain specification
    enclave                   private payloads and groups
    runtime, wallet           clock, lanes, options, logs; signing
    native                    typed facade of the Rust extension `ophion._native`
    primitives                value types: addresses, hex, RLP, headers

`docs/architecture.md` follows a block, a transaction and a call through the files.
"""

__version__ = "0.1.0"

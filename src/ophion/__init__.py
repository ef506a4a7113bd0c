"""Ophion: an Ethereum node for private networks.

Python decides, Rust computes. Each package below is a room with one purpose, and dependencies point down this list:

    cli                       command line: options, subcommands, what a person sees
    quickstart, bench         a network on one machine; how fast a network is
    node                      composition root: configuration to a running node
    gateway, metrics          one address with a page; what a node measures
    rpc, graphql, page        the public interface, and what people see of it
    enclave_http, privacy     private transactions, and their enclave for others
    peers                     other nodes
    producer, pool            blocks that are made, transactions that wait for them
    permissions               who may connect and transact
    chain                     head, import, build, queries
    consensus, chainspec      pure rules: header checks, votes, machines; genesis file to the rules of a network
    enclave                   payloads that only their participants read
    runtime, wallet           clock, lanes, options, logs; signing
    native                    the typed door to the Rust extension `ophion._native`
    primitives                values: types, hex, RLP, headers

`docs/architecture.md` tells what a block passes through and which file answers which question.
"""

__version__ = "0.1.0"

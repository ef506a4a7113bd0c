"""Ophion: an Ethereum node for private networks.

Python decides, Rust computes. Each package below is a room with one purpose, and dependencies point down this list:

    cli            command line: options, subcommands, what a person sees
    node           composition root: configuration to a running node
    rpc, graphql   the public interface
    producer, sync drive engines, follow the network
    pool, net      pending transactions, peers
    chain          head, import, build, queries
    consensus      pure rules: header checks, votes, machines
    chainspec      genesis file to chain specification
    native         the typed door to the Rust extension `ophion._native`
    runtime        clock, lanes, options, logs
    primitives     values: types, hex, RLP, headers

`docs/architecture.md` tells what a block passes through and which file answers which question.
"""

__version__ = "0.1.0"

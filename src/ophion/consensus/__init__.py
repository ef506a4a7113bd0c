"""The rules of consensus: who may make a block, what its header must say, which of two heads is better.

Everything in this package is pure: no clock, no input or output, no threads, no keys. Time is an argument, chain data
comes through `HeaderReader`, and signing is left to the producer.

    engine            `Engine` and `HeaderReader`: the door between rules and chain
    registry          chain specification to engine
    header_rules      rules all engines share, as plain functions that raise `InvalidHeader`
    difficulty        the difficulty formulas of proof of work
    pow               ethash
    clique            proof of authority after EIP-225; clique_snapshot is its voting state
    merge             headers after the merge, and the way there
    bft/              IBFT 2.0 and QBFT

An engine verifies a header against its parent; whether the body and the results match is checked by the chain package.
"""

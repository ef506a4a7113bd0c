"""Consensus rules: which node may produce a block, what its header must contain, which head is preferred.

All code in this package is pure: no clock, no I/O, no threads, no keys. Time is an argument, chain data comes through
`HeaderReader`, and the producer signs.

    engine            `Engine` and `HeaderReader`: the interface between rules and chain
    engine_factory    creates the engine of a chain specification
    header_rules      rules all engines share, as plain functions that raise `InvalidHeader`
    difficulty        the difficulty formulas of proof of work
    pow               ethash
    clique            proof of authority as in EIP-225; clique_snapshot is its voting state
    merge             headers at and after the merge
    bft/              IBFT 2.0 and QBFT; bft/bft_schedule moves a chain from IBFT 2.0 to QBFT
    bft_form_choices  the forms that options of a validator choose
    clique_to_qbft    moves a chain from Clique to QBFT at a block
    missed_migration  detects that the network has moved to QBFT without this node

An engine verifies a header against its parent; the chain package checks body and execution results.
"""

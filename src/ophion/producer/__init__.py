"""Making blocks: who starts and stops it, when the next block is due, and what seals it.

    assembly    from the pool to a block without its seal, and from a sealed block to the importer
    growth      a block while its transactions arrive, executed ahead of the time it is due
    control     MiningControl: start, stop, coinbase and settings, external miners; runs the chosen way of sealing
    instant     development network: a block as soon as there is something to put in it, sealed without work
    interval    development network with --block-period: a block every so many seconds
    clique_loop Clique: the blocks of one signer, in turn and out of turn
    bft_driver  IBFT 2.0 and QBFT: events for the BFT machine, and what it asks for carried out
    pow_miner   proof of work: candidates, a search in Rust, verification of what external miners submit

Every way ends in `chain.importer`, the only door for blocks, which takes the execution that building has left behind
instead of running the block again. Nothing here touches the database.
"""

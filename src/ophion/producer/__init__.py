"""Block production: when the next block is due, how it is built and how it is sealed.

    block_assembly       builds a block from the pool; hands a sealed block to the importer
    incremental_builder  executes the next block while its transactions arrive
    mining_control       `MiningControl`: start, stop, coinbase, settings, external miners; runs the sealer
    instant_sealer       development network: a block as soon as there is a transaction
    interval_sealer      development network with --block-period
    clique_sealer        Clique: in-turn and out-of-turn blocks of one signer
    bft_driver           IBFT 2.0 and QBFT: feeds the state machine and runs its effects
    pow_miner            proof of work: candidates, search in Rust, work of external miners

All sealers import through `chain.importer`, which reuses the execution of the builder. Only `vote_store` uses the
database directly.
"""

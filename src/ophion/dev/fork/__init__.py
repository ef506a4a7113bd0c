"""Forking: a development chain that continues another chain from one of its blocks.

    ForkSettings   address, block, retries, cache
    ForkSource     JSON-RPC client with batches and retries
    ForkCache      responses of the source on disk, by chain id and block hash
    ForkPoint      the forked block
    Fork           fetches state on first access, and answers requests about blocks up to the fork

Local changes are in the node's database, above the state of the fork (`ForkState`); the cache never contains them.
"""

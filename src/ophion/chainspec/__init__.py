"""Rules of one network, read from a genesis file.

    genesis_fields        JSON objects read by name, with the path in every error
    forks                 active fork per block, and what it changes (blobs, difficulty bomb)
    consensus_parameters  parameters of the consensus engines
    spec                  `ChainSpec`: all rules of a network in one frozen value
    genesis               `Genesis`: the specification, the first header and the first accounts
    config_compatibility  rules that a database must be opened with again
    dev                   the built-in development network and the names of refused networks

Rules of the network (forks, periods, limits) are here; settings of one node are options. This package reads no files:
callers pass text.
"""

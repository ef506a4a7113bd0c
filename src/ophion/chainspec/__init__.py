"""Rules of one network, read from a genesis file.

    genesis_fields        JSON objects read by name, with the path in every error
    forks                 active fork per block, and what it changes (blobs, difficulty bomb)
    consensus_parameters  parameters of the consensus engines
    spec                  `ChainSpec`: all rules of a network in one frozen value
    genesis               `Genesis`: the specification, the first header and the first accounts
    config_compatibility  rules that must stay the same when a database is opened again
    dev_network           the built-in development network and the names of refused networks

This package holds rules of the network (forks, periods, limits); settings of one node are options. The package reads no
files: callers pass text.
"""

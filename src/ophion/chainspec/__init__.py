"""From a genesis file to the rules of one network.

    members   JSON text to members that are read by name, with the path in every error
    forks     which fork is active where, and what it brings (blobs, difficulty bomb)
    engines   parameters of the consensus engines
    spec      `ChainSpec`: all that the network fixes, in one frozen value
    genesis   `Genesis`: the specification, the first header and the first accounts
    dev       the built-in development network and the names of networks that are refused

What belongs to the network (forks, periods, limits) is here; what belongs to this node is configuration, and the two
never mix. Nothing in this room reads a file: it is given text.
"""

"""The composition root: from options to a running node.

    config        NodeConfig: the rooms' options in one tree (interface_options, storage_options, …)
    network       which genesis the options choose
    datadir       the data directory: lock, layout, key, database; keyfile reads and writes keys
    build         the one place that constructs the rooms and connects them
    services      the interface of a node put together; ports has each service with a port, page that of the page
    peering       the service that meets other nodes
    node          start to stop: data directory, key, chain, services, signals
    preset        `ophion dev` as a list of ordinary options
    banner        what a person at a terminal sees; ports_file is what a script reads

Everything above this room is the command line; nothing below it knows where an option came from.
"""

"""The composition root: from options to a running node.

    config            NodeConfig: the options of all packages in one tree (interface_options, storage_options, …)
    besu              options, values and files of Besu
    network           the genesis that the options choose
    datadir           the data directory: lock, layout, key, database; node_key_file reads and writes keys
    foreign_data      refuses data directories of other clients
    build             constructs and connects chain, pool and producer
    listeners         builds each service with a port; web_interface builds the web interface
    services          builds the public interface from these services
    peering           builds the services that connect to other nodes
    launch, node      start to stop: options, data directory, key, chain, services, signals
    dev_preset        `ophion dev` as a list of ordinary options
    banner            startup text for a terminal; ports_file and pid_file are for scripts

Only the command line is above this package. Packages below do not know whether an option came from a flag, a variable
or a file.
"""

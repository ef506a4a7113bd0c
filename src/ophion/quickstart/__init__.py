"""A network on one machine: plain processes, one directory, one address (operations.md 15).

    plan ──> network_directory (keys, genesis, a directory per node) ──> ports ──> command lines
                                                                             │
    cli ──> NetworkLock ──> NetworkSupervisor ──> ChildProcess: rpcnode, validator1 … , proxy
                        └─ control socket <── `kill`, `start`, `stop` of another terminal

Every node runs a command line that also works without the quickstart (`--print-commands`). A network exists while its
directory exists, and runs while a process holds the lock in it. Children end with the supervisor, even after SIGKILL.

plan               nodes and settings of a network, stored in `network.json`
genesis            the genesis file
ports              the ports of all services: defaults, or free ports where the defaults are in use
network_directory  the directory: files created once, files written at every start, removal
command_lines      command lines of the processes
monitoring         configuration of Prometheus and Grafana
lock_file          the running supervisor and its processes
child_process      one process
supervisor         all processes, from start to stop
control_socket     commands from other terminals to a supervisor
node_status        block numbers of the nodes
report             texts for the terminal
"""

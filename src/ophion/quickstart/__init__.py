"""A network on one machine by one command: plain processes, one directory, one address (operations.md 15).

    plan ──> workdir (keys, genesis, a directory per node) ──> layout (ports) ──> command lines
                                                                   │
    cli ──> Lock ──> Supervisor ──> Child: rpcnode, validator1 … , proxy            ── ends ──> its children end
                        └─ control socket <── `kill`, `start`, `stop` of another terminal

Every node runs a command line that anybody can run without the quickstart (`--print-commands`). A network is there when
its directory is; it runs when somebody holds the lock in it. Children end with the supervisor, however that ends.

plan         what a network consists of, as `network.json` keeps it
genesis      its first block
layout       ports: those of the table, or free ones where they are taken
workdir      the directory: what is made once, what is written for every start, and taking it away
commands     what each process runs
monitoring   configuration of Prometheus and Grafana
lock         who runs a network, and its processes
child        one process
supervisor   all of them, from start to stop
control      what other terminals ask of a supervisor
blocks       asking nodes how far they are
report       what a person is shown
"""

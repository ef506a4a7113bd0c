r"""Additional processes that answer reads of JSON-RPC over HTTP (`--rpc-workers`, docs/decisions/0193-rpc-workers.md).

    client -> listening socket of the node -> node process            all methods
                                           \-> worker process          reads of the chain, from the database
                     (connection passed on)      | all other methods, as frames over a socket pair
                                                 v
                                               node process

The node alone writes the database, produces blocks and has a pool. A worker opens the database read-only.

head_page            the head that all processes show, in shared memory
frames               messages between the node and a worker
local_methods        methods that a worker answers itself
node_state           what a worker lacks; using it forwards the request
worker_dispatcher    dispatcher of a worker: answers or forwards
setup                what a worker gets at its start
worker_metrics       counters of a worker, added to those of the node
worker_link          connection of a worker to its node
worker               a worker, from start to stop            __main__   its entry point
forwarded_requests   requests of workers, answered by the node
wiring               builds the service of the node
supervision          starts, watches and ends the workers of a node
"""

"""Foundation of all services; no module of this package knows about blocks or peers.

    clock                 time and randomness, injected everywhere
    topic                 broadcast of events, bounded
    thread_pools          threads for blocking Rust calls, bounded
    batching              small jobs that share a lane
    transaction_decoding  raw transactions decoded on a thread of the Rust extension
    eager_coroutine       coroutines that start at once
    fair_scheduler        time slices of the event loop for connections
    block_priority        lets requests wait while the node works on its own block
    chunked_body          long replies in pieces
    memory_budget         limit on the bytes that all clients make the node hold
    principal             user of the current request's token
    supervisor            services: start order, orderly stop, fail-fast
    options               command line, environment and file, declared once
    operator_files        small files that operators write by hand
    logs, log_file        log lines, levels, rotation; terminal_text: escapes for untrusted text
    memory                returns freed memory to the system
    http_client           HTTP for the event loop; json_rpc_client: JSON-RPC on top of it
    grpc_client           unary gRPC calls; http2_connection, hpack: the part of HTTP/2 that they need
    blocking_json_rpc     JSON-RPC for commands and threads: batches, retries
    metrics               counters, gauges, timers; metric_category: their subjects
    lazy_imports          modules that a start leaves out; bytecode_files: reads compiled modules with fewer steps

All Python objects of a node belong to one event loop; threads only run Rust. Code above this package needs no lock.
"""

"""What every service stands on and none of them is about.

    clock        time and randomness, injected everywhere
    topic        broadcast of events, bounded
    lanes        threads for blocking Rust calls, bounded
    batching     small pieces of work that share a lane; decoding: raw transactions, beside the loop
    driven       coroutines that begin at once
    turns        whose turn of the loop it is; portions: long answers in pieces; budget: what clients make us hold
    subject      who asked for what is being done
    supervisor   services: start order, orderly stop, fail-fast
    options      command line, environment and file, declared once
    operator_files  small files written by hand, and what was named by mistake
    logs         log lines and levels; log_file: where they are kept
    memory       what was freed goes back to the system; garbage, open_files, interrupts: how a process behaves
    endpoint     JSON-RPC of another node over kept connections, for whoever is a client
    metrics      counters, gauges, timers

All Python objects of a node belong to one event loop; threads run Rust and nothing else. That is why there is no lock
anywhere above this room.
"""

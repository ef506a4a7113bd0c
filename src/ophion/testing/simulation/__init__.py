"""Deterministic simulation of consensus. A whole network runs in one thread, and one seed determines the run.

    fake_crypto       cheap blocks, keys and signatures
    fault_plan        faults that a seed determines: delays, losses, partitions, outages, Byzantine nodes
    network           a network of real `BftStateMachine`s, run by a seed or by a test
    event_queue, message_delivery, driver, sync, links
                      parts of a network: time, messages, effects of the machines, synchronisation, connections
    byzantine         Byzantine nodes
    invariants        rules checked after every step
    trace             log and sequence diagram of a run
    seed_runs         runs one seed or many, on all cores
    clique            the same for Clique: in-turn blocks, delays, forks and fork choice

The same arguments give the same steps, so the number of a failing seed is enough to repeat the run. See
docs/simulation.md.
"""

"""Deterministic simulation of consensus: whole networks in one thread, determined by one seed.

    fake_crypto       cheap blocks, keys and signatures
    fault_plan        faults of a seed: delays, losses, partitions, outages, Byzantine members
    network           a network of real `BftStateMachine`s, run by a seed or by a test
    event_queue, message_delivery, driver, sync, links
                      parts of a network: time, messages, effects of the machines, synchronisation, connections
    byzantine         members that lie
    invariants        rules checked after every step
    trace             log and sequence diagram of a run
    seed_runs         runs one seed or many, on all cores
    clique            the same for Clique: in-turn blocks, delays, forks and fork choice

The same arguments give the same steps, so a failing seed is replayed by its number. See docs/simulation.md.
"""

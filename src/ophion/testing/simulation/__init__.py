"""Deterministic simulation of consensus: whole networks in one thread, decided by one seed.

    stand_ins     blocks, keys and signatures that cost nothing
    conditions    what a seed decides: delays, losses, partitions, outages, misbehaving members
    world         a network of real `BftStateMachine`s, moved by a seed or by hand
    agenda, mail, driver, syncing
                  what the world is made of: time, messages, what a node does for its machine, catching up
    byzantine     members that lie
    invariants    what must hold after every step, checked from outside
    trace         what happened, as lines and as a sequence diagram
    runs          one seed or many, on all cores, with a verdict
    clique        the same for Clique: turns, delays, forks and fork choice

A run with the same arguments gives the same steps, so a failing seed is replayed by its number. See docs/simulation.md.
"""

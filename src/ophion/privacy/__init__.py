"""Private transactions: what is sent to a few, executed by them alone, and agreed upon through the public chain.

    eea_sendRawTransaction ─> submission: decode, check ─> enclave: seal, store, deliver ─> marker ─> pool
    chain: a block is committed ─> follower: markers ─> enclave: payloads ─> private states, receipts, logs ─> disk

Import waits for none of it. The follower goes where the canonical chain goes, one step behind; what it writes is kept
under the hashes of public blocks, with a mark that says how far it has come, in one write transaction. A node that is
killed goes on from the mark. What arrives late (a member that was away) is executed from its place in the chain on.

    transactions   submission.py: the checks of a private transaction, in order; markers.py: who signs the marker
    follower.py    markers of the chain to private states
    late.py        payloads that came after their markers
    results.py     receipts, logs and transactions as the interface shows them
    service.py     `Privacy`: all of it together, for the interface
    tenants.py     several owners of keys on one node
"""

"""Private transactions: what is sent to a few, executed by them alone, and agreed upon through the public chain.

    eea_sendRawTransaction ─> submission: decode, check ─> enclave: seal, store, deliver ─> marker ─> pool
    chain: a block is committed ─> follower: markers ─> enclave: payloads ─> private states, receipts, logs ─> disk

Import waits for none of it. The follower goes where the canonical chain goes, one step behind; what it writes is kept
under the hashes of public blocks, with a mark that says how far it has come, in one write transaction. A node that is
killed goes on from the mark. What arrives late (a member that was away) is executed from its place in the chain on.

    submission   the checks of a private transaction, in order
    markers      who signs markers, and with which nonce
    follower     markers of the chain to private states; payloads that came after their markers
    payloads     what the enclave has of markers
    retries      what an enclave outside did not have yet
    flexible     groups whose members a contract keeps
    hand_overs   what happened in such a group before a member was added
    results      receipts, logs and transactions as the interface shows them
    service      `Privacy`: all of it together, for the interface
    tenants      several owners of keys on one node
"""

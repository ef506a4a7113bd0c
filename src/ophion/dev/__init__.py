"""Development nodes: snapshots, time, mining on demand, impersonation and state edits.

Only a development network without peers has these parts. Its node makes every block itself. So the engine (`DevEngine`)
checks no header and fills in the values that a test has set.

    rpc/methods/dev_* ──> DevNode ──┬─> DevSealer   when to make blocks: at once, by interval, on demand
                                    ├─> DevClock    timestamp of the next block
                                    ├─> DevEngine   base fee, gas limit and randomness of the next block
                                    └─> HeadControl head and state of the chain

State is addressed by its root:

    snapshot   head, edited root of the head, pending transactions, clock and settings. No state is copied.
    revert     changes one database row (`Store.rewind`), at the same cost for one block and for a million. Rows of
               blocks above the head stay until new blocks replace them; queries do not look above the head.
    edit       a new root with the changes (`edit_state`), registered for the head (`Chain.edited_roots`). Queries
               of `latest` see the changes at once, and the next block builds on them. The header keeps its own root.

One lock (`DevSealer.head_lock`) covers every operation that moves the head: sealing, mining, reverting, editing.
"""

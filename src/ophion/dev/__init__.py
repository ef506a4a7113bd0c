"""Development nodes: snapshots, time, mining on demand, impersonation and state edits.

Only a chain of the development network without peers has these parts. All its blocks are this node's own, so the engine
(`DevEngine`) checks no header and fills in what a test has asked for.

    rpc/methods/evm, anvil, hardhat ──> DevNode ──┬─> DevSealer   when blocks are made: at once, by interval, on demand
                                                  ├─> DevClock    what time the next block has
                                                  ├─> DevEngine   base fee, gas limit and randomness of the next block
                                                  └─> HeadControl head and state of the chain

State is addressed by its root:

    snapshot   head, edited root of the head, waiting transactions, clock and settings. Nothing is copied.
    revert     one row of the database (`Store.rewind`): the cost is the same for one block and for a million. Rows of
               blocks above the head stay until others take their place; queries do not look above the head.
    edit       a new root with the changes (`edit_state`), registered for the head (`Chain.edited_roots`). The
               state of `latest` shows it at once, and the next block builds upon it. The header keeps its own root.

One lock (`DevSealer.turn`) covers everything that moves the head: sealing, mining, reverting, editing.
"""

"""The chain: what is committed, how blocks get in, and how the next one is built.

A block passes through these files, whoever it comes from:

    raw RLP ── block.py ──> ChainBlock (header with its hash, body decoded in Rust)
                               │
       importer.py             │  the node's door: runs the core in the write lane, publishes when it is on disk
       import_file.py          │  the command's door: a whole file, decoded and recovered ahead, committed in batches
                               v
    import_core.py   known? parent known? ── engine.verify, engine.verify_ommers        (consensus room)
                     validation.py: body against header
                     execute in Rust on the parent's state, committed or not
                     validation.py: results against header
                     fork_choice.py: does it become the head, and what leaves the canonical chain?
                     store.commit: headers, bodies, receipts, state, indexes in one transaction
                               │
    chain.py                   v  head moves, `events` publishes Extended or Reorged

Nothing is published before it is committed. A block that breaks a rule is remembered in bad_blocks.py, so that it is
not executed again; an unknown parent or a timestamp in the future is no such thing, only too early.
"""

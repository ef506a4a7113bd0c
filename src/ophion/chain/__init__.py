"""The chain: committed blocks, import and building.

Every block passes through these files:

    raw RLP ── block.py ──> ChainBlock (header with its hash, body decoded in Rust)
                               │
       importer.py             │  in a node: runs the core in the write lane, publishes after the commit
       import_file.py          │  in a command: a whole file, decoded ahead, committed in batches
                               v
    block_import.py  known? parent known? ── engine.verify, engine.verify_ommers        (ophion.consensus)
                     validation.py: body against header
                     execute in Rust on the parent's state, committed or not
                     validation.py: results against header
                     fork_choice.py: does it become the head, and what leaves the canonical chain?
                     store.commit: headers, bodies, receipts, state, indexes in one transaction
                               │
    chain.py                   v  moves the head, `events` publishes Extended or Reorged

Events follow the commit. bad_blocks.py remembers blocks that break a rule, so that no such block is executed again. A
block with an unknown parent or a future timestamp is not remembered, because it may become valid.
"""

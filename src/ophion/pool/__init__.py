"""Pending transactions: admitted, ordered, remembered.

    raw bytes ──> pool.add
                  intake.py         callers of one loop turn are put together
                    │ one native crossing in the `admit` lane: decode, hash, recover every sender
                  admission.py      an ordered list of checks, each with its own error (json-rpc.md 5.5)
                  queue.py          by sender and nonce: replacement, gaps held, eviction, order of building
                  journal.py        local transactions, written before their sender gets an answer
                    └──> Added | Dropped

When the chain says `Extended` or `Reorged` the pool forgets what was mined, takes back what was reorganised out, and
reads nonces and balances of the new head; this happens in the step that publishes the event, so nobody sees a pool
that disagrees with the head. Transactions with a nonce gap before them are held and counted as queued; they never
reach a block.
"""

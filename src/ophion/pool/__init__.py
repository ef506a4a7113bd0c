"""Transaction pool: admission, order, replacement, eviction, journal.

    raw bytes ──> pool.add
                  intake.py              callers of one loop step form a batch; the decoding threads recover senders
                  admitter.py            admits a batch: known transactions, replacement by price
                    ├ fast_path.py       a plain transaction, checked in one call into Rust
                    └ admission.py       the checks of json-rpc.md 5.5 in order, each with its own error
                  queue.py               by sender and nonce: executable or behind a gap, build order, eviction
                  local_transactions.py  writes local transactions to a file (journal.py) before it answers their sender
                    └──> Added | Dropped

On `Extended` and `Reorged` the pool removes mined transactions, returns the transactions of abandoned blocks, and reads
nonces and balances of the new head. The pool does this in the event loop step that publishes the event, so it always
matches the head. Transactions behind a nonce gap count as queued and are not included in blocks.
"""

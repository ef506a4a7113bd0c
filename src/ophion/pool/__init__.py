"""Transaction pool: admission, order, replacement, eviction, journal.

    raw bytes ──> pool.add
                  intake.py              a thread decodes transactions and recovers senders; all that are ready at
                                         one wake-up of the event loop form a batch
                  admitter.py            admits a batch: known transactions, replacement by price
                    ├ fast_path.py       a plain transaction, checked in one call into Rust
                    └ admission.py       the checks of json-rpc.md 5.5 in order, each with its own error
                  queue.py               by sender and nonce: executable or behind a gap, build order, eviction
                  local_transactions.py  writes local transactions to a file (journal.py) before it answers their sender
                    └──> Added | Dropped

On `Extended` and `Reorged` the pool removes mined transactions, returns the transactions of abandoned blocks, and reads
nonces and balances of the new head. The pool does this in the iteration of the event loop that publishes the event, so
it always matches the head. Transactions behind a nonce gap count as queued and are not included in blocks.
"""

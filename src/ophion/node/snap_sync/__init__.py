"""Fetches blocks and a recent state from peers instead of executing every block (`--sync-mode=SNAP`).

    peers ─> headers, bodies, receipts up to the pivot ─> state of the pivot ─> rename to `database`

blocks          blocks with receipts: seals, roots and hashes are verified, nothing is executed
trusted_hashes  hashes of all blocks up to a block whose hash the operator trusts
state           the state of the pivot in ranges with proofs; after a change of the pivot, the differences
peer_choice     which peer gets a request for a part of the state
synchroniser    chooses the pivot, fetches the blocks and then the state
network         the connections during the synchronisation
installation    runs all steps in the data path of a node

The directory `snap` in the data path holds everything until the last rename. A killed process leaves no database, and
the next start continues. Decision 184 describes what is verified.
"""

"""Fetches blocks and a recent state from peers instead of executing every block (`--sync-mode=SNAP`).

    peers ─> headers up to the pivot ─> state of the pivot ─> last bodies and receipts ─> rename to `database`

headers          verifies and writes headers
header_download  requests headers
trusted_hashes   hashes of all blocks up to a block whose hash the operator trusts
state            the state of the pivot in ranges with proofs; after a change of the pivot, the differences
peer_choice      which peer gets a request for a part of the state
synchroniser     chooses the pivot, fetches the headers, the state and the last bodies
network          the connections during the synchronisation
installation     runs all steps in the data path of a node

The directory `snap` in the data path holds everything until the last rename. A killed process leaves no database, and
the next start continues. The other bodies and receipts follow while the node runs (`peers/sync/block_history.py`).
Decision 197 describes what is verified.
"""

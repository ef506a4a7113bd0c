"""The wire protocols of peers, as bytes: handshakes, frames, discovery packets, node records.

The functions use no sockets. The steps of one connection are:

    Handshake.caller              reads the node id that an auth message claims, before any response
    Handshake.initiate / answer   auth and ack                  -> Session
    session.feed(read)            returns only the peer's Hello
    session.is_compressed = ...   true if both Hellos have version 5
    session.max_message = ...     the size limit of the shared protocols
    session.feed(b"")             the bytes received after the Hello; later calls pass new bytes
    session.seal(messages)        frames to write

A peer's invalid input raises `WireError`.
"""

from ophion._native import (
    HANDSHAKE_ENTROPY,
    MAX_HANDSHAKE_SIZE,
    Handshake,
    Receipts,
    Session,
    WireError,
    body_rlp,
    header_fields,
    join_transactions,
    open_packet,
    read_record,
    seal_packet,
    sign_record,
    split_and_hash_transactions,
    split_bodies,
    split_list,
    split_receipts,
    split_transactions,
)

__all__ = [
    "HANDSHAKE_ENTROPY",
    "MAX_HANDSHAKE_SIZE",
    "Handshake",
    "Receipts",
    "Session",
    "WireError",
    "body_rlp",
    "header_fields",
    "join_transactions",
    "open_packet",
    "read_record",
    "seal_packet",
    "sign_record",
    "split_and_hash_transactions",
    "split_bodies",
    "split_list",
    "split_receipts",
    "split_transactions",
]

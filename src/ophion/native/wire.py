"""What peers say to each other, as bytes: handshakes, frames, discovery packets, node records.

Nothing here knows a socket. A connection's life:

    Handshake.caller              who says an auth is from it, before anything is answered
    Handshake.initiate / answer   auth and ack                  -> Session
    session.feed(read)            the peer's Hello, alone
    session.is_compressed = ...   both Hellos say version 5
    session.max_message = ...     what the shared protocols allow
    session.feed(b"")             what came behind the Hello already, then whatever arrives
    session.seal(messages)        frames to write

`WireError` is whatever a stranger got wrong.
"""

from ophion._native import (
    HANDSHAKE_ENTROPY,
    MAX_HANDSHAKE_SIZE,
    Handshake,
    Session,
    WireError,
    body_rlp,
    join_transactions,
    open_packet,
    read_record,
    seal_packet,
    sign_record,
    split_bodies,
    split_list,
    split_transactions,
)

__all__ = [
    "HANDSHAKE_ENTROPY",
    "MAX_HANDSHAKE_SIZE",
    "Handshake",
    "Session",
    "WireError",
    "body_rlp",
    "join_transactions",
    "open_packet",
    "read_record",
    "seal_packet",
    "sign_record",
    "split_bodies",
    "split_list",
    "split_transactions",
]

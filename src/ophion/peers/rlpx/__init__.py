"""The RLPx and p2p base protocol, without sockets.

    session      state machine of one connection: bytes in, events and bytes out
    hello        the Hello message
    capability   names, versions and message ids
    disconnect   the Disconnect message, in the encodings that clients use

Encryption, frames and compression are in the Rust extension (`ophion.native.wire`).
"""

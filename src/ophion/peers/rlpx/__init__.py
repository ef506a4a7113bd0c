"""The p2p protocol without sockets: who the other side is, what is shared, how a connection ends.

    session      bytes in, events and bytes out: handshake, Hello, messages
    hello        the first message of each side
    capability   names, versions and message ids
    disconnect   the last message, in the shapes that clients write

Encryption, frames and compression are in the extension (`ophion.native.wire`).
"""

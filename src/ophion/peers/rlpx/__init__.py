"""The p2p protocol without sockets: who the other side is, what is shared, how a connection ends.

    capability   names, versions and message ids
    hello        the first message of each side

Encryption, frames and compression are in the extension (`ophion.native.wire`).
"""

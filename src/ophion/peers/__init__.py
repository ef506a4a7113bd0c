"""Other nodes: finding them, talking to them, leaving them.

table         who is connected, for everyone
peer          one live connection, as everybody above it sees it
subprotocol   what rides on a connection: eth, the messages of validators
reasons       why connections end
rlpx/         the p2p protocol without sockets
"""

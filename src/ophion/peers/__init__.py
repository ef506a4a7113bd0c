"""Other nodes: finding them, talking to them, leaving them.

                        PeerService               listens, dials, stops; one task tree
       ┌──────────────┬──────┴───────┬───────────────────┐
   discovery/      policy/       connection/        eth/, sync/, consensus/, priv/
   who is there    whom to       a socket around    what rides on a connection: a `Subprotocol`
   (UDP)           dial, let     a session;         is attached to each peer that shares it
                   in, keep      bounds                   │
       └──────────────┴── Peers, Peer ┴───────────────────┘
                              │
                            rlpx/                 the p2p protocol without sockets
                              │
                      ophion.native.wire          keys, encryption, compression

    service       the room at work
    reception     who connects to this node, before the handshake
    table         who is connected, for everyone
    peer          one live connection, as everybody above it sees it
    subprotocol   what rides on a connection
    reasons       why connections end
    upnp          asking a router to let peers in
    options       the command line's side of it

What strangers can make this node do is bounded where it happens: handshakes at a time (policy/doorway), handshakes with
who is refused anyway (policy/crowd), bytes read
ahead and queued (connection), tasks for one peer, packets waiting (discovery/udp), and the share of the event loop that
all of it gets together (connection/turns).
"""

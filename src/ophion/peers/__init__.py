"""Other nodes: finding them, talking to them, leaving them.

                       PeerService          listens, dials, stops; one task tree
          ┌─────────────────┼──────────────────────┐
      policy/           connection/           eth, sync, consensus
    whom to dial,     a socket around a       what rides on a connection: a `Subprotocol` is attached
    let in, keep      session; bounds         to each peer that shares it
          │                 │                      │
          └──── Peers, Peer ┴──────────────────────┘
                            │
                          rlpx/               the p2p protocol without sockets
                            │
                     ophion.native.wire       keys, encryption, compression

    service       the room at work
    table         who is connected, for everyone
    peer          one live connection, as everybody above it sees it
    subprotocol   what rides on a connection
    reasons       why connections end
    options       the command line's side of it

What strangers can make this node do is bounded where it happens: handshakes at a time (policy/doorway), bytes read
ahead and queued (connection), tasks for one peer, and the share of the event loop that all connections get together
(connection/turns).
"""

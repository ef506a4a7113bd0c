"""devp2p: discovery, connections and sub-protocols.

                        PeerService               listens, dials, stops; one task tree
       ┌──────────────┬──────┴───────┬───────────────────┐
   discovery/      policy/       connection/        eth/, snap/, consensus/, priv/
   finds nodes     dialling,     a TCP socket       sub-protocols: `Subprotocol.attach` runs
   (UDP)           admission,    with its RLPx      for each peer that shares the capability
                   limits        session                  │
       └──────────────┴── Peers, Peer ┴───────────────────┘
                              │
                            rlpx/                 RLPx and the p2p base protocol, without sockets
                              │
                      ophion.native.wire          keys, encryption, compression

    service             `PeerService`, which starts and stops the other parts
    sync/               downloads blocks
    inbound             inbound connections before the handshake
    dialer              outbound connections
    open_connections    all sockets, from open to close
    peer_table          the connected peers
    peer                one peer, as sub-protocols see it
    subprotocol         the interface of sub-protocols
    disconnect_reasons  reasons for a Disconnect
    upnp, port_mapping  port mapping on a router
    options             command line options

Each limit on untrusted input is next to the code it protects: pending handshakes (policy/pending_limit), refused nodes
(policy/flood_guard), buffered and queued bytes and tasks per peer (connection), queued packets (discovery/udp), and
time on the event loop (connection/receive_scheduler).
"""

"""Discovery version 4: finding nodes over UDP (networking.md 2).

    datagrams ──> udp ──> discovery ──┬─> packets    the six kinds, typed
                  bounds  what is      ├─> bonds      who has proven its address, and until when
                  per     answered,    ├─> buckets    the nodes known, by distance
                  source  asked,       ├─> lookup     walking towards a target
                          offered      ├─> relayed    which nodes of others are believed
                                       └─> record     node records: ours, kept with its number, and those of others

Nobody is told anything longer than its own packet before it has answered a ping from its address: this node cannot be
used to flood somebody else. Nodes that were seen alive, and whose record does not name another chain, are offered to
the service of peers, which dials them while there is room.
"""

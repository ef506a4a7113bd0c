"""Node discovery protocol version 4 over UDP (networking.md 2).

    datagrams ──> udp ──> discovery ──┬─> packets          the six packet types
                  rate    requests,   ├─> endpoint_proofs  endpoint proofs and their expiry
                  limits  responses   ├─> routing_table    nodes by distance
                                      ├─> lookup           iterative lookup of a target
                                      ├─> neighbor_filter  validates addresses in Neighbors
                                      └─> node_record      node records (ENR), local and remote

Until a node has proven its endpoint, this node sends it no response that is larger than the request. So an attacker
cannot use this node to amplify traffic. Discovery offers live nodes to the peer service, unless their record names
another chain.
"""

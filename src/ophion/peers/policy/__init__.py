"""Connection policy: which nodes to dial, accept and keep. Uses no sockets and never waits.

    dial_plan      which nodes to dial and when: static peers, validators, then discovered nodes
    admission      which nodes may become peers: bans, duplicate connections, peer limits
    pending_limit  limits before the handshake: subnets, pending connections, attempts from one public address
    flood_guard    flood protection while the permission rules refuse many nodes
    bans           node ids that broke the protocol, banned for ten minutes
    addresses      subnets and public addresses
    static_nodes   reads static-nodes.json

Callers pass in time and randomness, so tests run without delays.
"""

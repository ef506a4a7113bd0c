"""Whom to dial, whom to let in, whom to keep: decisions without sockets or waiting.

    dial_plan     whom to dial and when: static peers, then what discovery found
    admission     who may become a peer: bans, duplicates, limits
    doorway       who may knock: subnets, handshakes at a time, attempts from one public address
    crowd         who is heard while the rules refuse many
    bans          node ids that broke the protocol, for ten minutes
    addresses     subnets, and what counts as public
    static_nodes  the file that names the peers to keep

Time and randomness are arguments, so that tests of hours take no time.
"""

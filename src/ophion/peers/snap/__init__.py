"""The sub-protocol snap/1: states in ranges with proofs (networking.md, "snap/1").

messages         message codes, sizes, encoding and decoding of requests
request_handler  the requests of one peer: queue, limits, responses
peer             `SnapPeer`: requests to a peer
protocol         `SnapProtocol`, offered to every peer

A node with a chain answers requests and sends none. A new node with --sync-mode=SNAP sends requests (`node/snap_sync`).
"""

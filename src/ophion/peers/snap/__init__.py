"""The sub-protocol snap/1: states in ranges with proofs (networking.md, "snap/1").

messages         message codes, sizes, decoding of requests
request_handler  the requests of one peer: queue, limits, responses
protocol         `SnapProtocol`, offered to every peer

This node answers requests. It sends none.
"""

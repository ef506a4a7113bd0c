"""Sockets: from bytes to a request, from an answer to bytes, for whatever application stands behind.

    accept -> tls -> places -> http | websocket -> turns -> application -> replies | streaming -> socket

listener      a port: listening, ticking, stopping in order; what HTTP and WebSocket services share
http          requests and answers of HTTP/1.1        websocket     handshake, frames, messages sent unasked
tls           key stores, handshakes under way
options       where a service listens
access        the host allow-list and allowed origins
origins       the same where a service has a page of its own
places        how many connections there may be, and who gives way
shared       what all services of a node share: `budget`, the bytes that clients make it hold, and `turns`, its time
taking        whether a client takes what was written for it
lingering     what a client still sends although it was told that nobody listens
replies       what becomes of a request: an answer now or later, whole or in pieces
streaming     answers that are still being made while they are sent
"""

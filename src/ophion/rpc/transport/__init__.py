"""Sockets: from bytes to a request, from an answer to bytes, for whatever application stands behind.

    accept -> tls -> places -> http | websocket -> application -> replies | streaming -> socket

listener      a port: listening, ticking, stopping in order; what HTTP and WebSocket services share
http          requests and answers of HTTP/1.1        websocket     handshake, frames, messages sent unasked
tls           key stores, handshakes under way
options       where a service listens
access        the host allow-list and allowed origins
places        how many connections there may be, and who gives way
slow_clients  clients that do not read: what they may leave unread together, and who is cut off
replies       what becomes of a request: an answer now or later, whole or in pieces
streaming     answers that are still being made while they are sent
"""

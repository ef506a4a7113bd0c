"""Sockets: from bytes to a request, from an answer to bytes, for any application.

    accept -> tls -> connection_slots -> http | websocket -> fair scheduler -> application -> replies -> socket

listener          a port: listening, ticking, stopping; common to HTTP and WebSocket services
http              requests and answers of HTTP/1.1        websocket     handshake, frames, notifications
options           where a service listens
access            the host allow-list and allowed origins
origins           allowed origins of a service with a web page of its own
connection_slots  the connection limit, and which connection is evicted
shared_resources  memory budget, scheduler and lane that all services of a node share
slow_reader       detects clients that do not read their answers
graceful_close    discards what a client sends after its last answer
remote_end        facts about the other end of a transport
replies           the result of a request: an answer now or later, whole or in pieces
streaming         answers that are sent while they are produced
"""

"""Sockets: read requests from bytes and write answers as bytes, for any application.

    accept -> tls -> connection_slots -> http | websocket -> fair scheduler -> application -> replies -> socket

listener          a listening port with its timer; base of HTTP and WebSocket services
http              requests and answers of HTTP/1.1        websocket     handshake, frames, notifications
options           host and port of a service
host_allowlist    host names that clients may use for a service
origins           web pages that may call a service
connection_slots  the connection limit, and which connection is evicted
shared_resources  memory budget, scheduler and lane that all services of a node share
slow_reader       detects clients that do not read their answers
graceful_close    discards input that arrives after the last answer
remote_end        address and connection state of the client
replies           the result of a request: an answer now or later, whole or in pieces
streaming         answers that are sent while they are produced
"""

"""TCP connections: each connects one socket to one RLPx session.

    socket ──bytes──> inbox ──┐                            ┌──> Attached.received   messages in order, on the loop
                              ├─> scheduler ─> session ────┤
    socket <──bytes── outbox ─┘                            └──> Peer                the handle for the layers above

    connection          stages and messages of one peer, disconnect; context: what all connections share
    channel             socket, session, receive buffer and send queue of a connection
    liveness            when to ping a peer, and when it has timed out
    task_group          tasks that end with a connection; failure: how a connection ends after an error
    listener            the TCP port; accepts sockets at once, or in batches during a flood
    pre_handshake       an accepted socket before its first message
    receive_scheduler   bounds the time of all connections on the event loop, and shares it fairly
    message_reassembly  bounds the bytes of large messages that have arrived in part
    send_queue          messages to send, bounded in bytes
    traffic             counters: messages and bytes by capability, connections by reason
    timeouts            timeouts of each stage

An undecodable message, or an exception in a handler, ends only its own connection.
"""

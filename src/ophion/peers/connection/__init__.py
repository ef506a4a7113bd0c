"""TCP connections: each connects one socket to one RLPx session.

    socket ──bytes──> inbox ──┐                            ┌──> Attached.received   messages in order, on the loop
                              ├─> scheduler ─> session ────┤
    socket <──bytes── outbox ─┘                            └──> Peer                the handle for the layers above

    connection          stages, timeouts, the tasks of one peer, disconnect
    listener            the TCP port; accepts sockets at once, or in batches during a flood
    pre_handshake       an accepted socket before its first message
    receive_scheduler   bounds the time of all connections on the event loop, and shares it fairly
    message_reassembly  bounds the bytes of large messages that have arrived in part
    send_queue          messages to send, bounded in bytes
    traffic             counters: messages and bytes by capability, connections by reason
    timeouts            timeouts of each stage

A message that fails to decode, or a handler that raises, ends that one connection and no other.
"""

"""One connection: a socket around a session.

    socket ──bytes──> inbox ──┐                        ┌──> Attached.received      in order, on the loop
                              ├─> turns ─> session ────┤
    socket <──bytes── outbox ─┘                        └──> Peer, who stands for it everywhere else

    connection   the shell: stages, time limits, the tasks of one peer, how it ends
    listener     the port; sockets are taken from it at once, or in batches
    visitor      a socket of which nothing is known yet but the address
    turns        a bounded slice of the event loop for all connections together, shared fairly
    assembly     large messages that have arrived in part, bounded in bytes
    outbox       what waits to be sent, bounded in bytes
    traffic      messages and bytes by capability, connections by reason
    timing       how long a stage may take

Failures end here. Whatever a peer sends, and whatever goes wrong while handling it, ends that connection and no other.
"""

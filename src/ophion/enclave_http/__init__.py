"""The enclave inside, over HTTP: served to tools that were written for one outside, and to enclaves of other nodes.

    application        for tools: paths and methods to operations of the enclave, in Orion's dialect (privacy.md 5)
    forms              what their requests hold and answers show: JSON, base64
    peer_application   for enclaves of nodes that are no peers (privacy.md 5.1), on a port of its own
    distant            the other end: lines to such enclaves, by URL
    envelope           what goes between them: boxes from one key to another
    open_requests      what waits, on either port

Both are applications of `rpc.transport`: places, limits, host list and slow clients are handled there. Whoever reaches
the port for tools can read and send as the node: it listens on loopback unless told otherwise. Whoever reaches the port
for enclaves can do what the key that it holds may do.
"""

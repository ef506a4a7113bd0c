"""HTTP interfaces of the embedded enclave: for tools, and for enclaves of other nodes.

    application        for tools: the HTTP API of Orion (privacy.md 5)
    request_bodies     parses request bodies: JSON, base64
    peer_application   for enclaves of nodes that are no peers (privacy.md 5.1), on its own port
    http_peers         client of such enclaves: one connection per URL
    envelope           encrypted messages between two enclave keys
    pending_requests   pending requests of either port
    rate_limits        rate limits of the senders on the port for enclaves
    tessera_requests   requests of enclaves of Tessera, on the same port
    tessera_peers      client of enclaves of Tessera

Both ports use `rpc.transport`, which handles connection limits, the host list and slow clients. A client of the port
for tools can read and send as the node, so that port listens on loopback by default. A client of the port for enclaves
has only the rights of its key.
"""

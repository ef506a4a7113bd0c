"""The public interface: JSON-RPC 2.0 over HTTP and WebSocket.

    request: bytes -> transport -> dispatch -> methods -> services -> chain, pool, producer
    answer:  bytes <- transport <- JSON, much of it rendered in Rust

    endpoints    HTTP and WebSocket services of a node: paths, methods of each port, health
    methods      the methods, one file per topic
    auth         tokens, logins, permissions
    presets      answers in the form of Anvil and of Hardhat's node
    services     filters, subscriptions, log searches, calls, simulation, traces; `RpcContext`, the context of a method
    dispatch     from one message to its answer: envelopes, ids, batches, deadlines and their limits
    schema       declaration of methods: registry, wire types, schemas, OpenRPC
    tls          certificates and handshakes
    transport    sockets: HTTP, WebSocket, connection limits, slow readers, streamed answers
    errors       all error codes and texts, and the mapping from exceptions to errors

Each package imports only packages below it (pyproject.toml). The transport also serves GraphQL
and metrics, so it knows only the error format of JSON-RPC.

A handler that never waits is a plain function; all other handlers are coroutines. Results that the Rust extension
renders (blocks, receipts, logs) stay bytes from Rust to the socket.
"""

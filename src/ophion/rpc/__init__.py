"""The public interface: JSON-RPC 2.0 over HTTP and WebSocket.

    bytes -> transport -> dispatch -> methods -> questions -> chain, pool, producer
                 \\<- bytes, spliced from what the extension rendered

    endpoints    all of it put together for a node: which paths there are, which methods a port offers, health
    methods      the methods, one file per topic
    auth         tokens, logins, permissions
    questions    what takes more than a lookup or outlives a request: filters, subscriptions, log searches, calls,
                 simulation, traces; and `RpcContext`, what a method may use
    dispatch     from one message to its answer: envelopes, ids, batches, deadlines and their limits
    language     how methods are declared and what their words look like: registry, wire types, schemas, OpenRPC
    transport    sockets: HTTP, WebSocket, TLS, places, clients that do not read, streamed answers
    errors       every code and text, and the one table from exceptions to them

Each room imports only rooms below it (pyproject.toml). The transport knows nothing of JSON-RPC but the form of its
errors: GraphQL and metrics are served by it too.

A handler is a plain function where it can answer at once. Results that the extension renders (blocks, receipts, logs)
stay bytes from Rust to the socket.
"""

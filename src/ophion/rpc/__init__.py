"""The public interface: JSON-RPC 2.0 over HTTP and WebSocket.

    bytes -> http_connection / websocket -> dispatcher -> methods/* -> RpcContext -> chain, pool, producer
                                     \\<- bytes, spliced from what the extension rendered

    registry       @method: declared once; everything else is derived from it
    wire_types     what a parameter or a result looks like on the wire; call_object, log_query for the larger ones
    dispatcher     envelopes and notifications; no task for a request that does not wait
    replies        what becomes of a request; batches, deadlines, request_ids, streaming
    errors         every code and text, and the one table from exceptions to them
    server         the HTTP service; http_connection, http_reader, http_answers, http_policy, http_wire, access, health
    tls            certificates; tls_handshakes
    websocket      the WebSocket service; websocket_connection, subscriptions
    filters        polling filters; log_search
    context        what a method may use
    openrpc        the registry as an OpenRPC document and as pages in docs/rpc
    services       all of it put together for a node

A handler is a plain function where it can answer at once. Results that the extension renders (blocks, receipts, logs)
stay bytes from Rust to the socket.
"""

r"""One address for a network: the web interface, and the services of all nodes by path.

    browser, client -> GatewayConnection -> PathRouter -> Upstream (connection pool) -> node       HTTP
                                               \--> Tunnel ----------------------> node      WebSocket, byte by byte
                                                \-> files of the web interface, nodes.json, metrics-index

The quickstart runs the gateway as its own process in front of all nodes. A node with `--page-http-enabled` runs the
gateway inside, in front of itself. The gateway connects only to the configured addresses. Paths are looked up in a
table, so client input never chooses the target of a connection. The HTTP transport of the node checks hosts and origins
and enforces all limits.

backends           nodes, their roles and the addresses of their services; `site.json`
routing            maps a path to a service or to an own response
node_status        `nodes.json`: which nodes are online
error_responses    404, 502, 503 and 504 in the format of the service
proxy_headers      headers of forwarded requests and responses
upstream           connection pool and request queue of one service
upstream_response  reads a response from a service: whole, or streamed with backpressure
tunnel             one WebSocket after its handshake; tunnel_direction: its bytes in one direction
connection         one client connection; fast_path: plain requests, without parsing
landing_page       files of the web interface
service, process   the listener, inside a node or as its own process
options            options of a node that serves the web interface
"""

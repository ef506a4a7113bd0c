"""One address for a network: a page, and the services of its nodes by path.

    browser, client -> GatewayConnection -> Paths -> Upstream (kept connections) -> node      HTTP
                                               \\--> Tunnel ----------------------> node      WebSocket, byte by byte
                                                \\-> files of the page, nodes.json, metrics-index

The quickstart runs it as a process of its own in front of all nodes; a node with `--page-http-enabled` runs it inside,
in front of itself. It speaks to the places it was given and to nobody else: paths are looked up in a table, and what a
client writes never decides where a connection goes. Who may ask at all (hosts, origins), how much is read, kept and
waited for is decided by the HTTP transport of the node, which this room is built on.

site         what there is to reach: nodes, roles, where their services listen; `site.json`
paths        from a path to a service and the path there; what else is answered here
roll         `nodes.json`: who answers at this moment
failures     the answers when that does not work: 404, 502, 503, 504, in the language of the service
heads        heads of requests and answers as they are passed on
upstream     kept connections to one service, requests that wait for one
answer       an answer on its way from a service: whole, or piece by piece with back-pressure
tunnel       one WebSocket, after its handshake       flow         its bytes, one way, in turn
connection   one client
front        the files of the page
service      the port                                 process      the same as a process of its own
options      those of a node that has a page
"""

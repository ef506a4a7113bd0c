"""HTML page for a browser that opens the JSON-RPC port.

Load balancers probe the same path and get an empty answer. Only a request that accepts HTML gets the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ophion.rpc.services.context import Endpoint
from ophion.rpc.transport.http.messages import Request, Response

_HTML: Final = b"text/html; charset=utf-8"
_GUARD: Final = (
    b"Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
    b"X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nVary: Accept\r\n"
)
_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Ophion</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 40em; margin: 4em auto; padding: 0 1em; color: #222 }}
code {{ background: #eee }}
</style>
<h1>Ophion</h1>
<p>This is the JSON-RPC port of an Ethereum node. Programs talk to it with <code>POST</code>; for people there is
little to see here.</p>
<ul>
{links}<li>Every method with its parameters and results: <code>docs/rpc</code> of the distribution, or what
<code>rpc.discover</code> answers.</li>
<li><a href="/liveness">/liveness</a> and <a href="/readiness">/readiness</a> say how the node is.</li>
</ul>
</html>
"""


def page(request: Request, endpoints: Mapping[str, Endpoint]) -> Response:
    """Return the HTML page. Its links to other services use the host name of the request."""
    from html import escape  # lazy import: few requests need the module html, which is slow to import

    host = request.headers.get(b"host", b"localhost").decode("latin-1")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    links = ""
    graphql, websocket = endpoints.get("graphQL"), endpoints.get("ws")
    if graphql is not None:
        address = escape(f"http://{name}:{graphql.port}/graphql", quote=True)
        links += f'<li>GraphQL, with a page for queries: <a href="{address}">{address}</a></li>\n'
    if websocket is not None:
        links += f"<li>JSON-RPC with subscriptions: <code>{escape(f'ws://{name}:{websocket.port}')}</code></li>\n"
    return Response(200, (_PAGE.format(links=links).encode(),), _HTML, _GUARD)

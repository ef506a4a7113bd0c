"""Routes of a gateway (operations.md 15.1).

/jsonrpc, /jsonws, /graphql           the first node; the prefix is removed, except for GraphQL
/<node>/jsonrpc, …/jsonws, …/graphql, …/metrics     that node
/prometheus/, /grafana/               the tools, if they run; Prometheus is configured to expect its prefix
/grafana-dashboard                    the overview in Grafana
/nodes.json, /metrics-index           node status, and targets for Prometheus
other paths                           the files of the web interface
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import orjson

from ophion.gateway.backends import BackendNetwork, ServiceKind
from ophion.gateway.error_responses import failure
from ophion.gateway.node_status import NO_STORE, NodeStatus
from ophion.gateway.proxy_headers import request_head, target_of, with_body, with_length
from ophion.gateway.upstream import Upstream
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.messages import JSON, Request, Response
from ophion.rpc.transport.http.policy import Result

PageAnswer = tuple[int, Sequence[tuple[str, str]], bytes]
"""Status, headers and body of a response."""
Page = Callable[[str, Mapping[bytes, bytes]], PageAnswer | None]
"""Returns a file of the web interface for a path and request headers."""
Route = tuple[Upstream, bytes]
"""A service, and the path of the forwarded request."""

_METHODS: Final = frozenset((b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"))
_OPTIONS: Final[Mapping[ServiceKind, str]] = {
    ServiceKind.JSON_RPC: "--rpc-http-enabled",
    ServiceKind.WEBSOCKET: "--rpc-ws-enabled",
    ServiceKind.GRAPHQL: "--graphql-http-enabled",
    ServiceKind.METRICS: "--metrics-enabled",
}
_DASHBOARD: Final = b"/grafana/d/ophion-overview/ophion?orgId=1&refresh=10s&from=now-30m&to=now&var-instance=All"
"""Path of the dashboard in `metrics/dashboard.json`, which the quickstart installs in Grafana."""
_MAX_SESSIONS: Final = 256
_HEADS: Final = 64
_MAX_HEAD_BYTES: Final = 1024
"""Maximum size of a remembered request head. This limit and the limits below bound the memory to some megabytes."""
_MAX_KNOWN_HEADS: Final = 1024
"""Maximum number of request heads that are recognised from any client. A recognised head takes the fast path."""
_FORWARD_CPU_S: Final = 200e-6
"""CPU seconds of forwarding a request and its response, charged when the request starts."""
_TICK_S: Final = 5.0


class ForwardingConnection(Protocol):
    """A client connection whose requests are forwarded."""

    def spend(self, seconds: float) -> None:
        """Charge CPU time that this client's requests use outside of the connection."""


class RouteTarget:
    """Forwards requests with the same service, path and headers (ophion.rpc.transport.http.policy.Session).

    If a connection repeats a request head, head and body are forwarded without parsing.
    """

    __slots__ = ("_head", "heads", "upstream")

    is_trusted = True
    may_call = True
    client = None

    def __init__(self, upstream: Upstream, head: bytes) -> None:
        self.upstream = upstream
        self._head = head
        self.heads = PlainHeads(_HEADS, _MAX_HEAD_BYTES)

    @property
    def is_short(self) -> bool:
        """Whether the HTTP request head is short enough to remember for later requests."""
        return len(self._head) <= _MAX_HEAD_BYTES

    def handle(self, body: bytes, connection: ForwardingConnection) -> Any:
        """Forward one request to the service."""
        connection.spend(_FORWARD_CPU_S)
        return self.upstream.ask(with_body(self._head, body))

    def head(self, size: int) -> bytes:
        """Return the request head for a body of this size."""
        return with_length(self._head, size)


class PathRouter:
    """The application on the port of a gateway: it answers or forwards each request by its path."""

    def __init__(self, site: BackendNetwork, page: Page, loop: asyncio.AbstractEventLoop) -> None:
        self.plain: Callable[..., Result] | None = None
        self._site = site
        self._page = page
        self._nodes = {
            node.name.encode(): {
                kind: Upstream(kind, node.name, place, site.host_name) for kind, place in node.places.items()
            }
            for node in site.nodes
        }
        self._first = self._nodes[site.nodes[0].name.encode()]
        self._tools = {name.encode(): Upstream(None, name, place) for name, place in site.tools.items()}
        self._sessions: dict[bytes, RouteTarget] = {}
        self._known: dict[bytes, RouteTarget] = {}
        named = {node.name: self._nodes[node.name.encode()].get(ServiceKind.JSON_RPC) for node in site.nodes}
        self._node_status = NodeStatus(site, named, loop)
        self._loop = loop
        self._ticking = loop.call_later(_TICK_S, self._tick)

    def close(self) -> None:
        """Stop all upstream connections and timers."""
        self._ticking.cancel()
        self._node_status.close()
        for upstream in self._upstreams():
            upstream.close()

    def respond(self, request: Request) -> Result:
        """Answer or forward a request for which `fast_route` returns None."""
        route = self.route(request.path)
        if isinstance(route, Response):
            return route
        if route is not None:
            upstream, path = route
            if request.method not in _METHODS:
                return failure(upstream.kind, 405, f"{request.method.decode('latin-1')} is not forwarded.")
            head = request_head(request.method, target_of(path, request.query), upstream.host, request.headers)
            has_body = request.body or request.method not in (b"GET", b"OPTIONS", b"DELETE")
            return upstream.ask(with_body(head, request.body) if has_body else head + b"\r\n")
        if request.method != b"GET":
            return failure(None, 404, "No service at this path accepts this method.")
        if request.path == b"/nodes.json":
            return self._node_status.now()
        if request.path == b"/metrics-index":
            return Response(200, (self._metrics_index(),), JSON, NO_STORE)
        if request.path == b"/grafana-dashboard" and b"grafana" in self._tools:
            return Response(301, headers=b"Location: %b\r\n" % _DASHBOARD)
        return self._file(request)

    def fast_route(self, request: Request) -> RouteTarget | Response | None:
        """Return the target of a POST to a service, cached by request head. Returns an error response if the service is
        off, and None for other requests.
        """
        if request.method != b"POST":
            return None
        route = self.route(request.path)
        if route is None or isinstance(route, Response):
            return route
        upstream, path = route
        head = request_head(b"POST", target_of(path, request.query), upstream.host, request.headers)
        if b"authorization" in request.headers or len(head) > _MAX_HEAD_BYTES:
            return RouteTarget(upstream, head)  # do not cache an HTTP request head that contains a token or is too long
        key = b"%d %b" % (id(upstream), head)
        found = self._sessions.get(key)
        if found is None:
            if len(self._sessions) >= _MAX_SESSIONS:
                self._sessions.clear()
            found = self._sessions[key] = RouteTarget(upstream, head)
        return found

    def remember(self, head: bytes, way: RouteTarget) -> None:
        """Remember the target of a request head for all clients. The head alone must determine the target."""
        if head not in self._known:
            if len(self._known) >= _MAX_KNOWN_HEADS:
                self._known.clear()
            self._known[head] = way

    def known(self, head: bytes) -> RouteTarget | None:
        """Return the target of a request head that some client has sent before, or None."""
        return self._known.get(head)

    def route(self, path: bytes) -> Route | Response | None:
        """Return the service of a path. Returns an error response if the service is off, and None if the path is
        unknown.
        """
        _, _, path = path.partition(b"/") if path.startswith(b"/") else (b"", b"", b"")
        first, _, rest = path.partition(b"/")
        services, name = self._first, self._site.nodes[0].name
        if first in self._nodes:
            services, name = self._nodes[first], first.decode()
            first, _, rest = rest.partition(b"/")
        elif first in (b"prometheus", b"grafana"):
            return self._tool(first, b"/" + path)
        try:
            kind = ServiceKind(first.decode("latin-1"))
        except ValueError:
            return None
        if kind is ServiceKind.METRICS and services is self._first and not path.startswith(name.encode()):
            return None  # metrics are served only under a path with a node name
        upstream = services.get(kind)
        if upstream is None:
            return failure(kind, 404, f"This service of {name} is off: {_OPTIONS[kind]} enables it.")
        if kind in (ServiceKind.GRAPHQL, ServiceKind.METRICS):
            return upstream, b"/%b%b" % (first, b"/" + rest if rest else b"")
        return upstream, b"/" + rest

    def socket(self, path: bytes) -> Upstream | None:
        """Return the service at this path if it accepts WebSockets, else None."""
        route = self.route(path)
        if route is None or isinstance(route, Response):
            return None
        return route[0] if route[0].kind is ServiceKind.WEBSOCKET and route[1] == b"/" else None

    def _tool(self, name: bytes, path: bytes) -> Route | Response:
        upstream = self._tools.get(name)
        if upstream is None:
            return failure(None, 404, f"{name.decode().capitalize()} is not installed beside this network.")
        # Prometheus expects the path prefix, and Grafana does not (see their guides for reverse proxies)
        return upstream, path if name == b"prometheus" else path.removeprefix(b"/grafana") or b"/"

    def _file(self, request: Request) -> Response:
        found = self._page(request.path.decode("latin-1"), request.headers)
        if found is None:
            return failure(None, 404, "Not found.")
        status, headers, body = found
        kind = next((value for name, value in headers if name.lower() == "content-type"), None)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers if name.lower() != "content-type")
        return Response(status, (body,) if body else (), None if kind is None else kind.encode(), lines.encode())

    # --- service discovery -----------------------------------------------------------------------

    def _metrics_index(self) -> bytes:
        """Return the scrape targets in the format of Prometheus HTTP service discovery."""
        found = [
            (node, node.places[ServiceKind.METRICS]) for node in self._site.nodes if ServiceKind.METRICS in node.places
        ]
        return orjson.dumps(
            [
                {
                    "targets": [f"{place.host}:{place.port}"],
                    "labels": {"node": node.name, "role": node.role, "network": self._site.network},
                }
                for node, place in found
            ]
        )

    # --- timer -----------------------------------------------------------------------------------

    def _upstreams(self) -> list[Upstream]:
        return [one for services in self._nodes.values() for one in services.values()] + list(self._tools.values())

    def _tick(self) -> None:
        for upstream in self._upstreams():
            upstream.tick(_TICK_S)
        self._ticking = self._loop.call_later(_TICK_S, self._tick)

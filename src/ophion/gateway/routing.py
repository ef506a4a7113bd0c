"""What the paths of a gateway mean (operations.md 15.1).

/jsonrpc, /jsonws, /graphql           the first node; prefixes are taken off, but that of GraphQL
/<node>/jsonrpc, …/jsonws, …/graphql, …/metrics     that node
/prometheus/, /grafana/               the tools, where they are there; paths are kept, as the first is told to expect
/grafana-dashboard                    the overview in Grafana
/nodes.json, /metrics-index           what there is: for the page, for Prometheus
everything else                       the files of the page
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import orjson

from ophion.gateway.backends import Kind, Site
from ophion.gateway.error_responses import failure
from ophion.gateway.node_status import NO_STORE, Roll
from ophion.gateway.proxy_headers import request_head, target_of, with_body, with_length
from ophion.gateway.upstream import Upstream
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.messages import JSON, Request, Response
from ophion.rpc.transport.http.policy import Result

PageAnswer = tuple[int, Sequence[tuple[str, str]], bytes]
"""Status, headers and body."""
Page = Callable[[str, Mapping[bytes, bytes]], PageAnswer | None]
"""Looks a file of the page up, by path and headers of the request."""
Route = tuple[Upstream, bytes]
"""A service, and the path there."""

_METHODS: Final = frozenset((b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"OPTIONS"))
_OPTIONS: Final[Mapping[Kind, str]] = {
    Kind.JSON_RPC: "--rpc-http-enabled",
    Kind.WEBSOCKET: "--rpc-ws-enabled",
    Kind.GRAPHQL: "--graphql-http-enabled",
    Kind.METRICS: "--metrics-enabled",
}
_DASHBOARD: Final = b"/grafana/d/ophion-overview/ophion?orgId=1&refresh=10s&from=now-30m&to=now&var-instance=All"
"""That of `metrics/dashboard.json`, which the quickstart gives to Grafana."""
_MAX_SESSIONS: Final = 256
_HEADS: Final = 64
_LONGEST_HEAD: Final = 1024
"""What is remembered of clients is some megabytes, whatever they send: so many ways, with so many heads each."""
_MAX_KNOWN: Final = 1024
"""Heads by which a client is known with its first request."""
_FORWARD_S: Final = 200e-6
"""Processor time of forwarding a request and copying its answer. It is counted in advance, when the request begins."""
_TICK_S: Final = 5.0


class ForwardingConnection(Protocol):
    """A client connection whose requests are forwarded."""

    def spend(self, seconds: float) -> None:
        """Count processor time that this client's requests cost elsewhere."""


class RouteTarget:
    """The session of requests that go the same way with the same headers (ophion.rpc.transport.http.policy.Session).

    A connection that sends such a head again is not parsed again: head and body go on at once.
    """

    __slots__ = ("_head", "heads", "upstream")

    is_trusted = True
    is_heard = True
    client = None

    def __init__(self, upstream: Upstream, head: bytes) -> None:
        self.upstream = upstream
        self._head = head
        self.heads = PlainHeads(_HEADS, _LONGEST_HEAD)

    @property
    def is_short(self) -> bool:
        """Whether it is worth keeping for the next request."""
        return len(self._head) <= _LONGEST_HEAD

    def handle(self, body: bytes, connection: ForwardingConnection) -> Any:
        """Pass one request on."""
        connection.spend(_FORWARD_S)
        return self.upstream.ask(with_body(self._head, body))

    def head(self, size: int) -> bytes:
        """The head of a request with a body of this size."""
        return with_length(self._head, size)


class Paths:
    """The application behind the port of a gateway."""

    def __init__(self, site: Site, page: Page, loop: asyncio.AbstractEventLoop) -> None:
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
        named = {node.name: self._nodes[node.name.encode()].get(Kind.JSON_RPC) for node in site.nodes}
        self._roll = Roll(site, named, loop)
        self._loop = loop
        self._ticking = loop.call_later(_TICK_S, self._tick)

    def close(self) -> None:
        """The service stops."""
        self._ticking.cancel()
        self._roll.close()
        for upstream in self._upstreams():
            upstream.close()

    def respond(self, request: Request) -> Result:
        """Any request but those of a `RouteTarget`."""
        route = self.route(request.path)
        if isinstance(route, Response):
            return route
        if route is not None:
            upstream, path = route
            if request.method not in _METHODS:
                return failure(upstream.kind, 405, f"{request.method.decode('latin-1')} is not passed on.")
            head = request_head(request.method, target_of(path, request.query), upstream.host, request.headers)
            has_body = request.body or request.method not in (b"GET", b"OPTIONS", b"DELETE")
            return upstream.ask(with_body(head, request.body) if has_body else head + b"\r\n")
        if request.method != b"GET":
            return failure(None, 404, "There is nothing here that takes this.")
        if request.path == b"/nodes.json":
            return self._roll.now()
        if request.path == b"/metrics-index":
            return Response(200, (self._metrics_index(),), JSON, NO_STORE)
        if request.path == b"/grafana-dashboard" and b"grafana" in self._tools:
            return Response(301, headers=b"Location: %b\r\n" % _DASHBOARD)
        return self._file(request)

    def passage(self, request: Request) -> RouteTarget | Response | None:
        """The way of a POST to a service, which is remembered; None for everything else."""
        if request.method != b"POST":
            return None
        route = self.route(request.path)
        if route is None or isinstance(route, Response):
            return route
        upstream, path = route
        head = request_head(b"POST", target_of(path, request.query), upstream.host, request.headers)
        if b"authorization" in request.headers or len(head) > _LONGEST_HEAD:
            return RouteTarget(upstream, head)  # not kept: it holds somebody's token, or too much
        key = b"%d %b" % (id(upstream), head)
        found = self._sessions.get(key)
        if found is None:
            if len(self._sessions) >= _MAX_SESSIONS:
                self._sessions.clear()
            found = self._sessions[key] = RouteTarget(upstream, head)
        return found

    def remember(self, head: bytes, way: RouteTarget) -> None:
        """A head that leaves nothing to decide leads this way, whoever sends it."""
        if head not in self._known:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[head] = way

    def known(self, head: bytes) -> RouteTarget | None:
        """The way of a head that somebody has sent before."""
        return self._known.get(head)

    def route(self, path: bytes) -> Route | Response | None:
        """Where a path leads: to a service, to the answer that it is off, or nowhere."""
        _, _, path = path.partition(b"/") if path.startswith(b"/") else (b"", b"", b"")
        first, _, rest = path.partition(b"/")
        services, name = self._first, self._site.nodes[0].name
        if first in self._nodes:
            services, name = self._nodes[first], first.decode()
            first, _, rest = rest.partition(b"/")
        elif first in (b"prometheus", b"grafana"):
            return self._tool(first, b"/" + path)
        try:
            kind = Kind(first.decode("latin-1"))
        except ValueError:
            return None
        if kind is Kind.METRICS and services is self._first and not path.startswith(name.encode()):
            return None  # of a node that is named only
        upstream = services.get(kind)
        if upstream is None:
            return failure(kind, 404, f"This service of {name} is off: {_OPTIONS[kind]} opens it.")
        if kind in (Kind.GRAPHQL, Kind.METRICS):
            return upstream, b"/%b%b" % (first, b"/" + rest if rest else b"")
        return upstream, b"/" + rest

    def socket(self, path: bytes) -> Upstream | None:
        """The service behind a path that a WebSocket may be opened to."""
        route = self.route(path)
        if route is None or isinstance(route, Response):
            return None
        return route[0] if route[0].kind is Kind.WEBSOCKET and route[1] == b"/" else None

    def _tool(self, name: bytes, path: bytes) -> Route | Response:
        upstream = self._tools.get(name)
        if upstream is None:
            return failure(None, 404, f"{name.decode().capitalize()} is not installed beside this network.")
        # as their own instructions for proxies have it: the first keeps the prefix, the second does not
        return upstream, path if name == b"prometheus" else path.removeprefix(b"/grafana") or b"/"

    def _file(self, request: Request) -> Response:
        found = self._page(request.path.decode("latin-1"), request.headers)
        if found is None:
            return failure(None, 404, "There is nothing here.")
        status, headers, body = found
        kind = next((value for name, value in headers if name.lower() == "content-type"), None)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers if name.lower() != "content-type")
        return Response(status, (body,) if body else (), None if kind is None else kind.encode(), lines.encode())

    # --- what there is ---------------------------------------------------------------------------

    def _metrics_index(self) -> bytes:
        """What to scrape, in the form of Prometheus' service discovery over HTTP."""
        found = [(node, node.places[Kind.METRICS]) for node in self._site.nodes if Kind.METRICS in node.places]
        return orjson.dumps(
            [
                {
                    "targets": [f"{place.host}:{place.port}"],
                    "labels": {"node": node.name, "role": node.role, "network": self._site.network},
                }
                for node, place in found
            ]
        )

    # --- time ------------------------------------------------------------------------------------

    def _upstreams(self) -> list[Upstream]:
        return [one for services in self._nodes.values() for one in services.values()] + list(self._tools.values())

    def _tick(self) -> None:
        for upstream in self._upstreams():
            upstream.tick(_TICK_S)
        self._ticking = self._loop.call_later(_TICK_S, self._tick)

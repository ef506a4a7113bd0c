"""Tests routes of paths, and refused paths."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import orjson
import pytest

from ophion.gateway.backends import BackendNetwork, BackendNode, ServiceAddress, ServiceKind
from ophion.gateway.routing import PathRouter, RouteTarget
from ophion.rpc.transport.http.messages import Request, Response


def place(port: int) -> ServiceAddress:
    return ServiceAddress("127.0.0.1", port)


SITE = BackendNetwork(
    "quickstart",
    "qbft",
    (
        BackendNode(
            "rpcnode",
            "rpc",
            {
                ServiceKind.JSON_RPC: place(8545),
                ServiceKind.WEBSOCKET: place(8546),
                ServiceKind.GRAPHQL: place(8547),
                ServiceKind.METRICS: place(9545),
            },
            "enode://00@127.0.0.1:1",
        ),
        BackendNode("validator1", "validator", {ServiceKind.JSON_RPC: place(21001), ServiceKind.METRICS: place(9551)}),
    ),
    {"prometheus": place(9090), "grafana": place(3000)},
)


def within(play: Callable[[PathRouter], None]) -> None:
    """Run `play` with the routes of `SITE`."""

    async def main() -> None:
        paths = PathRouter(
            SITE,
            lambda path, headers: (
                (200, (("Content-Type", "text/html"), ("X-A", "b")), b"page") if path == "/" else None
            ),
            asyncio.get_running_loop(),
        )
        try:
            play(paths)
        finally:
            paths.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("path", "port", "there"),
    [
        (b"/jsonrpc", 8545, b"/"),
        (b"/jsonrpc/", 8545, b"/"),
        (b"/jsonrpc/login", 8545, b"/login"),
        (b"/jsonws", 8546, b"/"),
        (b"/graphql", 8547, b"/graphql"),
        (b"/graphql/ui/page.css", 8547, b"/graphql/ui/page.css"),
        (b"/rpcnode/jsonrpc", 8545, b"/"),
        (b"/rpcnode/metrics", 9545, b"/metrics"),
        (b"/validator1/jsonrpc", 21001, b"/"),
        (b"/validator1/metrics", 9551, b"/metrics"),
        (b"/prometheus/graph", 9090, b"/prometheus/graph"),
        (b"/grafana/d/x", 3000, b"/d/x"),
        (b"/grafana", 3000, b"/"),
    ],
)
def test_paths_of_services(path: bytes, port: int, there: bytes) -> None:
    def play(paths: PathRouter) -> None:
        route = paths.route(path)
        assert isinstance(route, tuple)
        assert (route[0].place.port, route[1]) == (port, there)

    within(play)


@pytest.mark.parametrize(
    "path",
    [
        b"/",
        b"",
        b"/metrics",
        b"/jsonrpcs",
        b"/validator2/jsonrpc",
        b"/validator1/",
        b"/validator1/validator1/jsonrpc",
        b"/JSONRPC",
        b"//jsonrpc",
        b"/./jsonrpc",
        b"/x/../jsonrpc",
        b"/%6asonrpc",
        b"http://127.0.0.1:9999/jsonrpc",
        b"127.0.0.1:9999",
        b"jsonrpc",
        b"*",
        b"/\xff\xfe",
    ],
)
def test_everything_else_reaches_no_service(path: bytes) -> None:
    within(lambda paths: None if paths.route(path) is None else pytest.fail(str(path)))


def test_a_service_that_is_off_says_what_opens_it() -> None:
    def play(paths: PathRouter) -> None:
        answer = paths.respond(Request(b"GET", b"/validator1/graphql", b"", {}, b""))
        assert isinstance(answer, Response)
        assert answer.status == 404
        assert b"--graphql-http-enabled enables it" in b"".join(answer.body)

    within(play)


def test_sockets_go_to_one_path_only() -> None:
    def play(paths: PathRouter) -> None:
        socket = paths.socket(b"/jsonws")
        assert socket is not None
        assert socket.place.port == 8546
        for path in (b"/jsonrpc", b"/jsonws/login", b"/graphql", b"/validator1/jsonws", b"/", b"/nodes.json"):
            assert paths.socket(path) is None

    within(play)


def test_ways_are_remembered_but_no_token_is() -> None:
    def play(paths: PathRouter) -> None:
        plain = Request(b"POST", b"/jsonrpc", b"", {b"host": b"a", b"content-type": b"b"}, b"{}")
        other = Request(b"POST", b"/validator1/jsonrpc", b"", dict(plain.headers), b"{}")
        secret = Request(b"POST", b"/jsonrpc", b"", {**plain.headers, b"authorization": b"Bearer x"}, b"{}")
        way = paths.fast_route(plain)
        assert isinstance(way, RouteTarget)
        assert paths.fast_route(plain) is way
        assert paths.fast_route(other) is not way
        assert paths.fast_route(secret) is not paths.fast_route(secret)
        assert paths.fast_route(Request(b"GET", b"/jsonrpc", b"", {}, b"")) is None

    within(play)


def test_what_is_remembered_of_clients_is_bounded() -> None:
    def play(paths: PathRouter) -> None:
        def way(value: bytes) -> RouteTarget:
            found = paths.fast_route(Request(b"POST", b"/jsonrpc", b"", {b"host": b"a", b"x": value}, b"{}"))
            assert isinstance(found, RouteTarget)
            return found

        long = way(b"y" * 60_000)
        assert way(b"y" * 60_000) is not long
        assert not long.is_short
        cached = {id(one): one for one in (way(b"%d" % number) for number in range(2000))}
        alive = sum(way(b"%d" % number) is cached.get(id(way(b"%d" % number))) for number in range(1900, 2000))
        assert alive == 100
        one = way(b"z")
        for number in range(5000):
            head = b"POST /jsonrpc HTTP/1.1\r\nConnection: %d\r\n\r\n" % number
            one.heads.learn(head + b"{}", 2)
            paths.remember(head, one)
            assert paths.known(head) is one
        assert len(one.heads.sizes) <= 64
        known = (paths.known(b"POST /jsonrpc HTTP/1.1\r\nConnection: %d\r\n\r\n" % number) for number in range(5000))
        assert sum(way is not None for way in known) <= 1024

    within(play)


def test_files_of_the_page_and_what_there_is() -> None:
    def play(paths: PathRouter) -> None:
        def get(path: bytes) -> Response:
            answer = paths.respond(Request(b"GET", path, b"", {}, b""))
            assert isinstance(answer, Response)
            return answer

        assert get(b"/") == Response(200, (b"page",), b"text/html", b"X-A: b\r\n")
        assert get(b"/elsewhere").status == 404
        assert get(b"/grafana-dashboard").headers.startswith(b"Location: /grafana/d/ophion-overview/ophion?")
        index = orjson.loads(b"".join(get(b"/metrics-index").body))
        assert [one["targets"] for one in index] == [["127.0.0.1:9545"], ["127.0.0.1:9551"]]
        assert paths.respond(Request(b"POST", b"/nodes.json", b"", {}, b"")).status == 404  # type: ignore[union-attr]
        assert paths.respond(Request(b"TRACE", b"/jsonrpc", b"", {}, b"")).status == 405  # type: ignore[union-attr]

    within(play)

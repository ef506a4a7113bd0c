"""Tests the HTTP client: reused connections, bounds, deadlines and invalid replies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ophion.runtime.http_client import HttpClient, HttpError, HttpTimeout, HttpUnreachable

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """A server that sends the same bytes for each request, and closes the connection after some requests."""

    def __init__(self, reply: bytes = REPLY, closes_after: int = 1000) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self._reply = reply
        self._closes_after = closes_after

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for _ in range(self._closes_after):
            try:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            writer.write(self._reply)
            await writer.drain()
        writer.close()


def play(server: Server, story: Callable[[str], Awaitable[None]]) -> None:
    async def main() -> None:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        async with asyncio.timeout(20):
            await story(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/base/")
        listening.close()

    asyncio.run(main())


def test_a_connection_is_kept_for_the_next_request() -> None:
    server = Server()

    async def story(url: str) -> None:
        client = HttpClient(url)
        for _ in range(3):
            reply = await client.request("GET", "/up", headers={"X-Y": "z"})
            assert (reply.status, reply.reason, bytes(reply.body)) == (200, "OK", b"ok")
        client.close()

    play(server, story)
    assert server.connections == 1
    assert server.requests[0].startswith(b"GET /base/up HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nX-Y: z\r\nContent-Length: 0\r\n" in server.requests[0]


def test_a_connection_that_the_server_closed_is_replaced() -> None:
    server = Server(closes_after=1)

    async def story(url: str) -> None:
        client = HttpClient(url)
        for _ in range(3):
            assert (await client.request("GET", "/up")).status == 200
        client.close()

    play(server, story)
    assert server.connections == 3


@pytest.mark.parametrize("surplus", [b" ", REPLY, b"HTTP/1.1 "])
def test_bytes_after_a_reply_are_not_taken_for_the_next_one(surplus: bytes) -> None:
    server = Server(REPLY + surplus)

    async def story(url: str) -> None:
        client = HttpClient(url)
        for _ in range(2):
            assert (await client.request("GET", "/")).body == b"ok"

    play(server, story)
    assert server.connections == 2


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
    ],
)
def test_every_form_of_a_body_is_read(reply: bytes, body: bytes) -> None:
    async def story(url: str) -> None:
        assert (await HttpClient(url).request("GET", "/")).body == body

    play(Server(reply, closes_after=1), story)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"", "the server closed the connection"),
        (b"nonsense\r\n\r\n", "HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "incomplete"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "the reply is too long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + bytes(1001), "the reply is too long"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000, "head of the reply is too long"),
    ],
)
def test_a_reply_out_of_bounds_is_an_error(reply: bytes, reason: str) -> None:
    async def story(url: str) -> None:
        with pytest.raises(HttpError, match=reason):
            await HttpClient(url, max_reply_bytes=1000).request("GET", "/")

    play(Server(reply, closes_after=1), story)


def test_one_deadline_covers_the_whole_reply() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        while not writer.is_closing():
            writer.write(b".")
            await asyncio.sleep(0.02)

    async def main() -> None:
        listening = await asyncio.start_server(drip, "127.0.0.1", 0)
        client = HttpClient(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", timeout_s=0.1)
        with pytest.raises(HttpTimeout, match=r"no reply within 0\.1 s"):
            await client.request("GET", "/")
        listening.close()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_an_unreachable_server_is_named_by_the_system() -> None:
    async def main() -> None:
        with pytest.raises(HttpUnreachable, match="Connection refused"):
            await HttpClient("http://127.0.0.1:1").request("GET", "/")
        with pytest.raises(HttpUnreachable, match="not a valid host name"):
            await HttpClient("http://a..b:1").request("GET", "/")

    asyncio.run(main())

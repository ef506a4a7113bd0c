"""Tests valid HTTP answers of every form, and invalid answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ophion.errors import CommandError
from ophion.runtime.json_rpc_client import JsonRpcEndpoint


def asked(answer: bytes, token: str | None = None) -> tuple[Any, bytes]:
    """Return the client's result for these response bytes, and the request that the client sent."""
    got = b""

    async def story() -> Any:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal got
            got = await reader.readuntil(b"}")
            writer.write(answer)
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            line = await JsonRpcEndpoint(f"http://127.0.0.1:{port}/jsonrpc?x=1", token).connect()
            try:
                return await line.call("eth_blockNumber")
            finally:
                await line.close()

    return asyncio.run(story()), got


GOOD = b'{"jsonrpc":"2.0","id":1,"result":"0x7"}'


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 39\r\n\r\n" + GOOD,
        b"HTTP/1.1 200 OK\r\ncontent-length:39\r\nX: y\r\n\r\n" + GOOD,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n"
        + GOOD[:16]
        + b"\r\n17;x=y\r\n"
        + GOOD[16:]
        + b"\r\n0\r\n\r\n",
    ],
)
def test_an_answer_is_read(answer: bytes) -> None:
    result, request = asked(answer, "abc")
    assert result == "0x7"
    assert request.startswith(b"POST /jsonrpc?x=1 HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"Authorization: Bearer abc\r\n" in request


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "sends no JSON-RPC reply"),
        (b"nonsense\r\n\r\n", "sends no JSON-RPC reply"),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "HTTP 403 Forbidden"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 39\r\n\r\n{", "sends no JSON-RPC reply"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "sends no JSON-RPC reply"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "sends no JSON-RPC reply"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "too long"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "sends no JSON-RPC reply"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000, "sends no JSON-RPC reply"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{]", "sends no JSON-RPC reply"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "neither result nor error"),
        (b'HTTP/1.1 401 No\r\nContent-Length: 36\r\n\r\n{"error":{"message":"Unauthorized"}} ', "Unauthorized"),
    ],
)
def test_what_is_no_answer_is_one_line(answer: bytes, words: str) -> None:
    with pytest.raises(CommandError, match=words) as caught:
        asked(answer)
    assert "\n" not in str(caught.value)


def test_an_unreachable_node_gives_one_line() -> None:
    with pytest.raises(CommandError, match=r"http://127\.0\.0\.1:1 cannot be reached: Connection refused$"):
        asyncio.run(JsonRpcEndpoint("http://127.0.0.1:1").connect())


def test_the_answer_to_an_interrupted_request_is_not_used_for_the_next_one() -> None:
    async def story() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"}")
            is_asked.set()
            await may_answer.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 39\r\n\r\n" + GOOD)
            await writer.drain()
            writer.close()

        is_asked, may_answer = asyncio.Event(), asyncio.Event()
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            line = await JsonRpcEndpoint(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}").connect()
            asking = asyncio.create_task(line.call("eth_blockNumber"))
            await is_asked.wait()
            asking.cancel()
            await asyncio.wait({asking})
            may_answer.set()
            with pytest.raises(CommandError, match="was interrupted"):
                await line.call("eth_getTransactionCount")
            await line.close()

    asyncio.run(asyncio.wait_for(story(), 20))

"""Sends mutated HTTP to every service of a node."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random

from tests.abuse.target import Target, opened
from tests.fuzz.finding import check_answer

PAUSE_S = 0.02
MAX_BYTES = 1 << 20

CALL = b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
REQUESTS = (
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(CALL), CALL),
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1:8545\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(CALL), CALL),
    b"POST /?x=y HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
    % (len(CALL), CALL),
    b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'5;a=b\r\n{"id"\r\n3\r\n:1}\r\n0\r\nX: y\r\n\r\n',
    b"POST / HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(CALL), CALL),
    b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n%b" % (len(CALL), CALL),
    b"POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\nContent-Length: %d\r\n\r\n%b"
    % (len(CALL), CALL),
    b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nAccess-Control-Request-Method: POST\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n",
    b"GET /readiness?minPeers=0&maxBlocksBehind=2 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /liveness HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b'POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 31\r\n\r\n{"username":"a","password":"b"}',
    b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /graphql?query=%7Bblock%7Bnumber%7D%7D HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 29\r\n\r\n"
    b'{"query":"{block{number}}"}  ',
)
PIECES = (
    b"\r\n",
    b"\r\n\r\n",
    b"\r",
    b"\n",
    b"\0",
    b" ",
    b":",
    b",",
    b"\x80\xff",
    b"Content-Length: 5\r\n",
    b"Content-Length: 18446744073709551616\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: 0x10\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive, Upgrade\r\n",
    b"Upgrade: websocket\r\n",
    b"Expect: 100-continue\r\n",
    b"Expect: nothing\r\n",
    b"Host: localhost\r\n",
    b"Host: evil.example\r\n",
    b"Origin: null\r\n",
    b"Authorization: Bearer a.b.c\r\n",
    b"X: " + b"y" * 3000 + b"\r\n",
    b" folded\r\n",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"7fffffff\r\n",
    b"HTTP/1.0",
    b"HTTP/9.9",
    b"HTTP/0.9",
    b"?a&" * 50,
)


def edited(sample: bytes, random: Random) -> bytes:
    """Return a sample after a few edits: bytes and parts inserted, removed, duplicated, flipped."""
    content = bytearray(sample)
    for _ in range(random.choice((0, 1, 1, 2, 3, 6))):
        at = random.randrange(len(content) + 1)
        end = at + random.choice((1, 2, 8, 40))
        match random.randrange(7):
            case 0:
                content[at:at] = random.choice(PIECES)
            case 1:
                # insert after a line end, where the parser expects a header
                line = content.find(b"\r\n", random.randrange(len(content) + 1))
                if line >= 0:
                    content[line + 2 : line + 2] = random.choice(PIECES)
            case 2:
                del content[at:end]
            case 3:
                content[at:at] = content[at:end] * random.choice((1, 2, 50))
            case 4:
                content[at : at + 1] = bytes((random.randrange(256),))
            case 5 if at < len(content):
                content[at] ^= 1 << random.randrange(8)
            case 6:
                del content[at:]
    return bytes(content)


def message(random: Random) -> bytes:
    """Return one or several requests, possibly mutated."""
    match random.randrange(20):
        case 0:
            return random.randbytes(random.randrange(2000))
        case 1:
            return edited(random.choice(REQUESTS), random) * random.choice((2, 30, 300))
        case 2:
            return b"".join(edited(random.choice(REQUESTS), random) for _ in range(random.randrange(40)))
        case _:
            return edited(random.choice(REQUESTS), random)


async def case(target: Target, random: Random) -> bytes:
    """Send some messages over one connection, split anywhere, and check the answers."""
    places = [place for place in (target.http, target.http, target.ws, target.graphql, target.metrics) if place]
    sent = b""
    async with opened(random.choice(places)) as (reader, writer):
        for _ in range(random.choice((1, 1, 1, 2, 4))):
            data = message(random)[:MAX_BYTES]
            sent += data
            cut = random.randrange(len(data) + 1)
            for piece in (data[:cut], data[cut:]):
                writer.write(piece)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PAUSE_S):
                        await writer.drain()
                        check_answer(await reader.read(1 << 16), sent)
        if random.randrange(4) == 0 and not writer.is_closing():
            writer.write_eof()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PAUSE_S):
                    check_answer(await reader.read(1 << 16), sent)
    return sent

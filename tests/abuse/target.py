"""A node under attack, and plain sockets for attacks that no client library can send."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import resource
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from ophion.native.crypto import PrivateKey, keccak256
from ophion.primitives.enode import Enode
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.abuse.attacker import delivered
from tests.abuse.metered_node import Meter
from tests.unit.rpc.contracts import many_logs

ANSWER_LIMIT_S = 40.0
HEAD = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n"
DEV_CHAIN = "0x7e2"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Unanswered(Exception):
    """An attack was neither answered nor cut off as expected."""


class Place(NamedTuple):
    """Address of a service."""

    host: str
    port: int
    path: bytes = b"/"
    """Path of requests. Requests through a gateway have another path."""
    is_encrypted: bool = False

    @classmethod
    def parse(cls, text: str) -> Place:
        """Parse HOST:PORT."""
        host, _, port = text.rpartition(":")
        return cls(host or "127.0.0.1", int(port))

    @property
    def url(self) -> str:
        return f"http{'s' if self.is_encrypted else ''}://{self.host}:{self.port}{self.path.decode()}"


@dataclass
class Target:
    """Addresses of the services of a node. Attacks on missing services are skipped."""

    http: Place
    ws: Place
    graphql: Place | None = None
    metrics: Place | None = None
    secret: bytes = b""
    """Secret that signs tokens, if the node requires them."""
    enclave: Place | None = None
    """Address of the port for other enclaves."""
    enode: Enode | None = None
    """Enode URL of the node."""
    enodes: tuple[Enode, ...] = ()
    """Enode URLs of all validators, if the target is a network."""
    network: str = ""
    max_gap_s: float = 4.0
    """Maximum seconds between two blocks of the network: two periods and a round timeout."""
    pid: int | None = None
    meter: Meter | None = None
    """Meter of the blocked time of the node's event loop; None if the node does not measure it."""
    scale: float = 1.0

    def count(self, full: int, least: int = 4) -> int:
        """Scale a number of items: `full` is the number of a full run. The result is at least `least`."""
        return max(least, int(full * self.scale))


def expect(truth: bool, what: str) -> None:
    if not truth:
        raise Unanswered(what)


def allow_many_sockets() -> None:
    """Raise the limit on open files, because an attacker needs as many sockets as the node."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# --- HTTP ----------------------------------------------------------------------------------------


@cache
def careless() -> ssl.SSLContext:
    """Return a TLS context that accepts any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextlib.asynccontextmanager
async def opened(place: Place) -> AsyncIterator[Streams]:
    encrypted = careless() if place.is_encrypted else None
    opening = asyncio.open_connection(place.host, place.port, limit=2**26, ssl=encrypted)
    reader, writer = await asyncio.wait_for(opening, ANSWER_LIMIT_S)
    try:
        yield reader, writer
    finally:
        delivered.note(writer)
        writer.transport.abort()


async def answer(reader: asyncio.StreamReader, limit_s: float = ANSWER_LIMIT_S) -> tuple[int, bytes]:
    """Return status and body of the next response; status 0 if the connection was closed instead."""
    try:
        async with asyncio.timeout(limit_s):
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split()[1])
            lower = head.lower()
            if b"transfer-encoding: chunked" in lower:
                return status, await _chunks(reader)
            if b"content-length: " not in lower:
                return status, await reader.read()
            return status, await reader.readexactly(int(lower.partition(b"content-length: ")[2].partition(b"\r")[0]))
    except (asyncio.IncompleteReadError, ConnectionError):
        return 0, b""
    except TimeoutError:
        raise Unanswered("nothing came back") from None


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """Return the body of a chunked answer."""
    parts = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(parts)


def request(body: bytes, extra: bytes = b"", path: bytes = b"/") -> bytes:
    return HEAD % (path, extra, len(body)) + body


async def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write as fast as the node reads. A closed connection is not an error."""
    with contextlib.suppress(ConnectionError):
        writer.write(data)
        await writer.drain()


async def post(place: Place, body: bytes, extra: bytes = b"") -> tuple[int, bytes]:
    async with opened(place) as (reader, writer):
        sending = asyncio.create_task(send(writer, request(body, extra, place.path)))
        try:
            return await answer(reader)
        finally:
            sending.cancel()


def call(name: str, *params: Any, id: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": name, "params": params}).encode()


async def ask(target: Target, name: str, *params: Any) -> Any:
    status, body = await post(target.http, call(name, *params))
    return json.loads(body) if status else None


def code(body: bytes) -> int | None:
    found: int | None = json.loads(body).get("error", {}).get("code")
    return found


# --- WebSocket -----------------------------------------------------------------------------------


def handshake(extra: bytes = b"", path: bytes = b"/") -> bytes:
    key = base64.b64encode(bytes(16))
    return (
        b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: " + key + b"\r\nSec-WebSocket-Version: 13\r\n" + extra + b"\r\n"
    )


@contextlib.asynccontextmanager
async def websocket(target: Target) -> AsyncIterator[Streams]:
    async with opened(target.ws) as (reader, writer):
        writer.write(handshake(path=target.ws.path))
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), ANSWER_LIMIT_S)
        expect(b" 101 " in head, f"no WebSocket: {head[:60]!r}")
        yield reader, writer


def frame(payload: bytes, first: int = 0x81) -> bytes:
    """Return a masked frame, by default text and final. The mask is zero, so the payload is unchanged."""
    size = len(payload)
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 1 << 16:
        length = b"\xfe" + size.to_bytes(2, "big")
    else:
        length = b"\xff" + size.to_bytes(8, "big")
    return bytes([first]) + length + bytes(4) + payload


async def closing_code(reader: asyncio.StreamReader) -> int | None:
    """Return the code with which the node closes; None if the close frame has no code. Earlier frames are skipped."""
    async with asyncio.timeout(ANSWER_LIMIT_S):
        try:
            while True:
                first, length = await reader.readexactly(2)
                size = length & 0x7F
                if size > 125:
                    size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
                payload = await reader.readexactly(size)
                if first == 0x88:
                    return int.from_bytes(payload[:2], "big")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None


# --- data to request -----------------------------------------------------------------------------


async def make_blocks(target: Target, count: int) -> None:
    """Make blocks with large transactions on a development chain. Does nothing on other chains."""
    async for key, nonce in _signers(target, 2, count):
        raw = legacy_transaction(key, nonce, gas=3_000_000, data=b"\x01" * 60_000)
        await ask(target, "eth_sendRawTransaction", "0x" + raw.hex())


async def make_logs(target: Target, count: int) -> None:
    """Make a block with `count` logs on a development chain. Does nothing on other chains."""
    async for key, nonce in _signers(target, 2, 1):
        await _enter(target, legacy_transaction(key, nonce, to=None, gas=100_000 + 500 * count, data=many_logs(count)))


async def make_contract(target: Target, code: bytes) -> str | None:
    """Deploy a contract with this code on a development chain. Returns None on other chains, or if there is no
    receipt.
    """
    init = (
        bytes.fromhex("60")
        + bytes((len(code),))
        + bytes.fromhex("600c60003960")
        + bytes((len(code),))
        + b"\x60\x00\xf3"
    )
    async for key, nonce in _signers(target, 2, 1):
        raw = legacy_transaction(key, nonce, to=None, gas=200_000, data=init + code)
        await _enter(target, raw)
        for _ in range(50):
            receipt = (await ask(target, "eth_getTransactionReceipt", "0x" + keccak256(raw).hex()) or {}).get("result")
            if receipt is not None:
                return str(receipt["contractAddress"])
            await asyncio.sleep(0.1)
    return None


async def wait_in_pool(target: Target, count: int, data: bytes = bytes(1_000_000), gwei: int = 1) -> None:
    """Send transactions that cannot be mined, because a lower nonce of the development account is missing."""
    async for key, nonce in _signers(target, 1, count):
        await _enter(target, legacy_transaction(key, nonce + 1, gas=16_000_000, gas_price=gwei * 10**9, data=data))


async def _signers(target: Target, account: int, count: int) -> AsyncIterator[tuple[PrivateKey, int]]:
    """Yield the key of a development account with its next nonces. Yields nothing on other chains."""
    chain = await ask(target, "eth_chainId")
    if chain["result"] != DEV_CHAIN:
        return
    key = DEV_KEYS[account]
    first = int((await ask(target, "eth_getTransactionCount", "0x" + key.address.hex(), "pending"))["result"], 16)
    for nonce in range(first, first + count):
        yield key, nonce


async def _enter(target: Target, raw: bytes) -> None:
    answer = await ask(target, "eth_sendRawTransaction", "0x" + raw.hex())
    expect(answer is None or "result" in answer, f"{answer}")

"""Asking nodes how far they are."""

from __future__ import annotations

import asyncio
from typing import Final

import orjson

from ophion.quickstart.layout import HOST

_ANSWER_S: Final = 2.0
_REQUEST: Final = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []})
_MOST_BYTES: Final = 64 * 1024


async def height(port: int) -> int | None:
    """The number of the head of the node on this port; None when it does not say."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            reader, writer = await asyncio.open_connection(HOST, port, limit=_MOST_BYTES)
            try:
                writer.write(
                    b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%b" % (len(_REQUEST), _REQUEST)
                )
                answer = await reader.read(_MOST_BYTES)
            finally:
                writer.close()
        return int(orjson.loads(answer.partition(b"\r\n\r\n")[2])["result"], 16)
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def heights(ports: dict[str, int]) -> dict[str, int | None]:
    """Of several nodes, by name."""
    found = await asyncio.gather(*(height(port) for port in ports.values()))
    return dict(zip(ports, found, strict=True))

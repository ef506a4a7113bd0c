"""Asking nodes how far they are, and whether somebody listens."""

from __future__ import annotations

import asyncio
from typing import Final

from ophion.errors import CommandError
from ophion.quickstart.layout import HOST
from ophion.runtime.endpoint import Endpoint

_ANSWER_S: Final = 2.0


async def height(port: int) -> int | None:
    """The number of the head of the node on this port; None when it does not say."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            connection = await Endpoint(f"http://{HOST}:{port}").connect()
            try:
                return int(await connection.ask("eth_blockNumber"), 16)
            finally:
                await connection.close()
    except (CommandError, TimeoutError, ValueError, TypeError):
        return None


async def listens(port: int) -> bool:
    """Whether connections to this port are taken."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            _, writer = await asyncio.open_connection(HOST, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def heights(ports: dict[str, int]) -> dict[str, int | None]:
    """Of several nodes, by name."""
    found = await asyncio.gather(*(height(port) for port in ports.values()))
    return dict(zip(ports, found, strict=True))

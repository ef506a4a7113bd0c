"""Requests the block numbers of nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from ophion.errors import CommandError
from ophion.quickstart.ports import HOST
from ophion.runtime.json_rpc_client import JsonRpcEndpoint

_ANSWER_S: Final = 2.0


async def height(place: int | str) -> int | None:
    """Return the block number of the node at this port, or None without a response."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            connection = await JsonRpcEndpoint(f"http://{HOST}:{place}").connect()
            try:
                return int(await connection.call("eth_blockNumber"), 16)
            finally:
                await connection.close()
    except (CommandError, TimeoutError, ValueError, TypeError):
        return None


async def heights(places: Mapping[str, int | str]) -> dict[str, int | None]:
    """Return the block numbers of several nodes by name; None for a node that does not answer."""
    found = await asyncio.gather(*(height(place) for place in places.values()))
    return dict(zip(places, found, strict=True))

"""Tests load steps against a slow node."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from ophion.bench.load_step import LoadGenerator, LoadShape, LoadStep
from ophion.bench.sender_accounts import Senders
from ophion.native.crypto import PrivateKey
from ophion.runtime.clock import SystemClock
from ophion.runtime.json_rpc_client import JsonRpcEndpoint

KEY = PrivateKey(b"\x11" * 32)
SLOW_S = 0.05


def played(answer: Callable[[str, list[Any]], dict[str, Any]], senders: Senders, steps: int) -> list[LoadStep]:
    """Run steps of three transactions each. Every answer takes some time."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            asked = json.loads(await reader.readexactly(int(head.rpartition(b"Content-Length: ")[2])))
            await asyncio.sleep(SLOW_S)
            body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer(asked["method"], asked["params"])})
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body.encode()))
        writer.close()

    async def story() -> list[LoadStep]:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            load = LoadGenerator(
                JsonRpcEndpoint(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"), senders, SystemClock()
            )
            try:
                return [await load.run(30, 0.1, LoadShape(1, 1), 1.0) for _ in range(steps)]
            finally:
                await load.close()

    return asyncio.run(asyncio.wait_for(story(), 30))


def test_every_question_gets_its_own_answer_when_a_step_ends_in_the_middle_of_one() -> None:
    """Regression: when the end of a step interrupted the block poller, the next request received the answer for the
    poller.
    """

    def answer(method: str, params: list[Any]) -> dict[str, Any]:
        if method == "eth_sendRawTransaction":
            return {"error": {"code": -32000, "message": "no"}}
        return {"result": {"eth_blockNumber": "0x5", "eth_getTransactionCount": "0x63"}[method]}

    senders = Senders([KEY], 1, 0)
    for step in played(answer, senders, 3):
        assert (step.sent, step.refused, step.blocks) == (3, {"no": 3}, [])
    expected = Senders([KEY], 1, 0)
    expected.sign(0x63)
    assert senders.sign(1) == expected.sign(1)

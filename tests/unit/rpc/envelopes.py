"""Requests, answers and errors as text, and a dispatcher in process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.transport.replies import Complete, PendingReply, Reply
from ophion.rpc.transport.streaming import StreamedAnswer
from tests.unit.rpc.wire import Context, dispatcher


def run(test: Callable[[Dispatcher, Context], Awaitable[Any]], **limits: Any) -> Any:
    async def main() -> Any:
        context = Context()
        return await test(dispatcher(context, asyncio.get_running_loop(), **limits), context)

    return asyncio.run(main())


def ask(body: bytes | dict[str, Any] | list[Any], **limits: Any) -> tuple[int, Any]:
    """Send a message. Returns status and parsed body. On a slow machine even a short batch may have to wait."""

    async def main(dispatch: Dispatcher, context: Context) -> tuple[int, Any]:
        reply = dispatch.handle(body if isinstance(body, bytes) else json.dumps(body).encode())
        if isinstance(reply, PendingReply):
            done: asyncio.Future[Complete] = asyncio.get_running_loop().create_future()
            reply.deliver = done.set_result
            reply = await done
        return read(reply)

    result: tuple[int, Any] = run(main, **limits)
    return result


def read(reply: Reply) -> tuple[int, Any]:
    assert not isinstance(reply, PendingReply | StreamedAnswer)
    text = reply if isinstance(reply, bytes) else reply.join()
    return (200 if isinstance(reply, bytes) else reply.status), (json.loads(text) if text else None)


def request(name: str, *params: Any, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": name, "params": list(params)}


def error(code: int, message: str, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}

"""JSON-RPC on a Unix socket: messages, limits, the file of the socket."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ophion.rpc.transport.ipc import IpcError, IpcService, JsonSplitter, MessageTooLong
from ophion.rpc.transport.replies import Complete, PendingReply, Reply

LIMIT = 1024


def test_messages_are_found_in_any_portions() -> None:
    messages = [b'{"a":[1,{"b":"}"}]}', b"[]", b'[{"x":"\\"]\\\\"}]', b'{"\\u007b":"{"}']
    stream = b" \n".join(messages)
    for seed in range(200):
        chance = random.Random(seed)
        splitter, found, rest = JsonSplitter(LIMIT), [], stream
        while rest:
            size = chance.randint(1, 9)
            found += splitter.feed(rest[:size])
            rest = rest[size:]
        assert found == messages


def test_a_message_beyond_the_limit_is_refused() -> None:
    splitter = JsonSplitter(LIMIT)
    splitter.feed(b'{"a":"' + b"x" * (LIMIT - 6))
    with pytest.raises(MessageTooLong, match="longer than 1024 bytes"):
        splitter.feed(b"x")


def test_bytes_outside_of_a_message_reach_the_parser() -> None:
    assert JsonSplitter(LIMIT).feed(b"nonsense {}") == [b"nonsense {}"]
    assert JsonSplitter(LIMIT).feed(b"]") == [b"]"]


@asynccontextmanager
async def served(path: Path, handle: Callable[[bytes, object], Reply]) -> AsyncIterator[IpcService]:
    service = IpcService(path, lambda: handle, lambda connection: None, LIMIT, LIMIT)
    is_ready = asyncio.Event()
    task = asyncio.create_task(service.run(is_ready.set))
    ready = asyncio.create_task(is_ready.wait())
    await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if task.done():
        task.result()
    try:
        yield service
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def echo(message: bytes, caller: object) -> Reply:
    return message


def test_a_client_is_answered_and_notified_and_the_socket_removed(tmp_path: Path) -> None:
    path = tmp_path / "node.ipc"

    async def scenario() -> None:
        async with served(path, echo) as service:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b'{"id":1}{"id":')
            writer.write(b"2}")
            assert [json.loads(await reader.readline()) for _ in range(2)] == [{"id": 1}, {"id": 2}]
            (connection,) = service.connections
            connection.notify(b'{"head":1}')
            assert await reader.readline() == b'{"head":1}\n'
            writer.write(b"{" * (2 * LIMIT))
            assert await reader.read() == b"", "the connection ends"

    asyncio.run(scenario())
    assert not path.exists()


def test_open_requests_are_limited_and_abandoned_with_the_connection(tmp_path: Path) -> None:
    requests: asyncio.Queue[PendingReply[Complete]] = asyncio.Queue()

    def hold(message: bytes, caller: object) -> Reply:
        reply: PendingReply[Complete] = PendingReply()
        requests.put_nowait(reply)
        return reply

    async def scenario() -> None:
        abandoned = asyncio.Event()
        async with served(tmp_path / "node.ipc", hold):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "node.ipc")
            writer.write(b"{}" * 129)
            held = [await requests.get() for _ in range(128)]
            assert requests.empty()
            held[0].resolve(b"{}")
            assert await reader.readline() == b"{}\n"
            last = await requests.get()
            last.forget = lambda reply: abandoned.set()
            writer.close()
            await abandoned.wait()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_many_messages_of_one_client_leave_room_for_others(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def note(message: bytes, caller: object) -> Reply:
        seen.append(message)
        return message

    async def scenario() -> None:
        async with served(tmp_path / "node.ipc", note):
            many, first = await asyncio.open_unix_connection(tmp_path / "node.ipc")
            one, second = await asyncio.open_unix_connection(tmp_path / "node.ipc")
            first.write(b"{}" * 20_000)
            second.write(b"[5]")
            assert await one.readline() == b"[5]\n"
            assert len(seen) < 20_000
            for _ in range(20_000):
                assert await many.readline() == b"{}\n"

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_left_over_socket_is_replaced_and_anything_else_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "node.ipc"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()

    async def twice() -> None:
        async with served(path, echo):
            with pytest.raises(IpcError, match=r"Address already in use\. Choose another path with --ipc"):
                async with served(path, echo):
                    pass

    asyncio.run(twice())
    path.write_text("mine")
    with pytest.raises(IpcError, match="Address already in use"):
        asyncio.run(twice())
    assert path.read_text() == "mine"

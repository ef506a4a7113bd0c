"""Tests messages between a node and a worker."""

from __future__ import annotations

import asyncio
import socket

import pytest

from ophion.node.rpc_workers.frames import FrameKind, FrameLink, read_frame
from ophion.testing.wait_for import until

Received = tuple[FrameKind, int, bytes]


async def linked(received: list[Received], lost: list[bool]) -> tuple[FrameLink, FrameLink]:
    """Return two links that are connected. Frames of the first are collected."""
    loop = asyncio.get_running_loop()
    sender = FrameLink(lambda kind, number, payload: None, lambda: None)
    receiver = FrameLink(lambda *frame: received.append(frame), lambda: lost.append(True))
    for link, sock in zip((sender, receiver), socket.socketpair(), strict=True):
        sock.setblocking(False)
        await loop.create_unix_connection(lambda link=link: link, sock=sock)  # type: ignore[misc]
    return sender, receiver


def test_frames_arrive_whole_and_in_order() -> None:
    async def exchange() -> None:
        received: list[Received] = []
        lost: list[bool] = []
        sender, _ = await linked(received, lost)
        sent = [
            (FrameKind.REQUEST, 1, b"request"),
            (FrameKind.CANCEL, 2**64 - 1, b""),
            (FrameKind.ANSWER, 3, bytes(range(256)) * 10_000),
            (FrameKind.HEAD, 0, b""),
        ]
        for frame in sent:
            sender.send(*frame)
        await until(lambda: len(received) == len(sent))
        assert received == sent
        sender.close()
        await until(lambda: lost)

    asyncio.run(exchange())


def test_frames_are_put_together_from_any_pieces() -> None:
    async def feed() -> None:
        received: list[Received] = []
        link = FrameLink(lambda *frame: received.append(frame), lambda: None)
        text = b"".join(
            len(payload).to_bytes(4, "little") + bytes([kind]) + number.to_bytes(8, "little") + payload
            for kind, number, payload in ((FrameKind.READY, 5, b""), (FrameKind.LOG, 20, b"line"))
        )
        for size in (1, 5, 13, 14, len(text)):
            for start in range(0, len(text), size):
                link.data_received(text[start : start + size])
        assert received == [(FrameKind.READY, 5, b""), (FrameKind.LOG, 20, b"line")] * 5

    asyncio.run(feed())


def test_a_process_reads_its_first_frame_before_it_has_an_event_loop() -> None:
    ours, theirs = socket.socketpair()
    payload = b"setup" * 1000
    ours.sendall(len(payload).to_bytes(4, "little") + bytes([FrameKind.SETUP]) + bytes(8) + payload)
    assert read_frame(theirs) == (FrameKind.SETUP, payload)
    ours.close()
    with pytest.raises(EOFError):
        read_frame(theirs)
    theirs.close()

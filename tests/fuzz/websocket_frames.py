"""Sends mutated WebSocket frames: wrong bits, false lengths, fragmented messages, invalid close frames."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random

from tests.abuse.target import Target, handshake, opened
from tests.fuzz.finding import check_answer
from tests.fuzz.http_bytes import PAUSE_S, edited
from tests.fuzz.json_bodies import body

TEXT, BINARY, CONTINUATION, CLOSE, PING, PONG = 0x1, 0x2, 0x0, 0x8, 0x9, 0xA
FINAL, MASKED = 0x80, 0x80


def frame(first: int, payload: bytes, random: Random) -> bytes:
    """Return one frame. Sometimes the length is wrong or encoded incorrectly, or the mask is missing."""
    size, lie = len(payload), random.randrange(60)
    if lie == 0:
        size = random.choice((0, 125, 126, 65535, 65536, 1 << 31, (1 << 63) - 1, 1 << 63))
    mask_bit = 0 if lie == 1 else MASKED
    if size < 126 and lie != 2:
        length = bytes((mask_bit | size,))
    elif size < 1 << 16 and lie != 3:
        length = bytes((mask_bit | 126,)) + size.to_bytes(2, "big")
    else:
        length = bytes((mask_bit | 127,)) + size.to_bytes(8, "big")
    if not mask_bit:
        return bytes((first,)) + length + payload
    mask = random.randbytes(4)
    masked = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
    return bytes((first,)) + length + mask + masked


def frames(random: Random) -> bytes:
    """Return a message in one or several frames, with other frames in between."""
    match random.randrange(12):
        case 0:
            return frame(FINAL | random.choice((PING, PONG)), random.randbytes(random.randrange(130)), random)
        case 1:
            code = random.choice((0, 999, 1000, 1001, 1004, 1005, 1006, 1015, 2999, 3000, 5000, 65535))
            reason = random.choice((b"", b"bye", b"\xff\xfe", b"x" * 130))
            return frame(FINAL | CLOSE, random.choice((b"", b"\x03", code.to_bytes(2, "big") + reason)), random)
        case 2:
            return frame(random.randrange(256), random.randbytes(random.randrange(40)), random)
        case 3:
            return random.randbytes(random.randrange(60))
        case 4:
            return frame(FINAL | random.choice((PING, TEXT)), random.choice((b"", b"{}", b"[]")), random) * 200
        case _:
            text = body(random)[:20_000]
            pieces = random.choice((1, 1, 1, 2, 5))
            step = len(text) // pieces + 1
            found = b""
            for number in range(pieces):
                first = (TEXT if random.randrange(9) else BINARY) if number == 0 else CONTINUATION
                found += frame(first | (FINAL if number == pieces - 1 else 0), text[number * step :][:step], random)
                if random.randrange(8) == 0:
                    found += frame(FINAL | PING, b"in between", random)
            return found


async def case(target: Target, random: Random) -> bytes:
    """Open a socket, send some frames and check the answers."""
    sent = b""
    async with opened(target.ws) as (reader, writer):
        hello = handshake() if random.randrange(10) else edited(handshake(), random)
        data = b"".join(frames(random) for _ in range(random.choice((1, 3, 10))))
        if random.randrange(6) == 0:
            data = edited(data, random)
        # send handshake and frames in one write, or the frames in a second write
        pieces = (hello + data,) if random.randrange(4) == 0 else (hello, data)
        for piece in pieces:
            sent += piece
            writer.write(piece)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PAUSE_S):
                    await writer.drain()
                    check_answer(await reader.read(1 << 16), sent)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * PAUSE_S):
                while answer := await reader.read(1 << 16):
                    check_answer(answer, sent)
    return sent

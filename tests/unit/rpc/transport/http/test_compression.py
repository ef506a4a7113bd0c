"""Tests Accept-Encoding, and compressed answers in pieces."""

from __future__ import annotations

import asyncio
import gzip
import random

import pytest

from ophion.rpc.transport.http.compression import Compressed, takes_gzip
from ophion.runtime.chunked_body import ReplyPieces
from ophion.runtime.thread_pools import InlineLane, ThreadLane


@pytest.mark.parametrize(
    ("accepted", "wanted"),
    [
        (None, False),
        (b"", False),
        (b"identity", False),
        (b"gzip", True),
        (b"GZip", True),
        (b"x-gzip", True),
        (b"deflate, gzip;q=1.0, *;q=0.5", True),
        (b"br , gzip ; q = 0.1", True),
        (b"gzip;q=0", False),
        (b"gzip;q=0.000, br", False),
        (b"gzipped", False),
        (b"*", False),
        (b";;,,=;q", False),
    ],
)
def test_who_asks(accepted: bytes | None, wanted: bool) -> None:
    assert takes_gzip(accepted) is wanted


def packed(parts: list[bytes | memoryview], lane: InlineLane | ThreadLane) -> bytes:
    async def main() -> bytes:
        source = ReplyPieces(parts)
        body, found, before = Compressed(source, lane), b"", source.weight
        while (piece := await body.next()) is not None:
            assert piece
            assert source.weight <= before
            found, before = found + piece, source.weight
        assert source.weight == 0
        return found

    return asyncio.run(main())


@pytest.mark.parametrize("seed", range(5))
def test_any_parts_are_decompressed_unchanged(seed: int) -> None:
    chance = random.Random(seed)
    parts: list[bytes | memoryview] = []
    for _ in range(chance.randrange(1, 300)):
        part = chance.randbytes(chance.choice((0, 1, 100, 5000, 131_072, 200_000)) // chance.choice((1, 7)))
        parts.append(memoryview(part) if chance.random() < 0.5 else part)
    assert gzip.decompress(packed(parts, InlineLane("pack"))) == b"".join(parts)


def test_it_happens_in_the_lane() -> None:
    lane = ThreadLane("pack", 1, None)
    text = b"0123456789abcdef" * 100_000
    smaller = packed([text], lane)
    lane.close()
    assert len(smaller) < len(text) / 50
    assert gzip.decompress(smaller) == text


def test_memory_is_released_when_the_rest_is_not_needed() -> None:
    async def main() -> None:
        source = ReplyPieces([b"x" * 500_000])
        body = Compressed(source, InlineLane("pack"))
        await body.next()
        body.close()
        assert source.weight == 0
        assert await body.next() is None

    asyncio.run(main())

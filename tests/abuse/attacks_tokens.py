"""Attacks on a node that asks for tokens."""

from __future__ import annotations

import asyncio
import contextlib
import time

import jwt

from tests.abuse.target import Target, answer, call, expect, opened, post, request, send


def token(target: Target, expires_at: float) -> bytes:
    claims = {"permissions": ["*:*"], "username": "abuse", "exp": expires_at}
    return b"Authorization: Bearer " + jwt.encode(claims, target.secret, "HS256").encode() + b"\r\n"


async def expiring_tokens(target: Target) -> None:
    """1,500 connections that ask 40 milliseconds before their token ends, and go on asking."""
    if target.guarded is None:
        return
    async with contextlib.AsyncExitStack() as held:
        streams = [await held.enter_async_context(opened(target.guarded)) for _ in range(target.count(1500, 100))]
        expires_at = time.time() + 1.0
        asked = request(call("eth_blockNumber"), token(target, expires_at))
        await asyncio.sleep(expires_at - time.time() - 0.04)
        for _, writer in streams:
            writer.write(asked)
        for reader, _ in streams:
            await answer(reader)
        await asyncio.sleep(max(0.0, expires_at - time.time()) + 0.5)
        for _, writer in streams:
            writer.write(asked)
        late = [(await answer(reader))[0] for reader, _ in streams]
        expect(200 not in late, f"{late.count(200)} connections were served after their token had ended")


async def forged_tokens(target: Target) -> None:
    """4,000 connections with forged tokens, which learn nothing."""
    if target.guarded is None:
        return
    place = target.guarded
    forged = b"Authorization: Bearer e30.e30.AAAA\r\n"
    bodies = {name: await post(place, call(name), forged) for name in ("eth_blockNumber", "eth_nothing", "admin_peers")}
    expect(len(set(bodies.values())) == 1, f"methods are told apart: {bodies}")

    async def one() -> None:
        with contextlib.suppress(OSError):
            async with opened(place) as (reader, writer):
                await send(writer, request(call("eth_blockNumber"), forged) * 16)
                for _ in range(16):
                    status, _ = await answer(reader)
                    expect(status in (401, 503, 0), f"status {status} for a forged token")

    await asyncio.gather(*(one() for _ in range(target.count(4000))))


ATTACKS = (expiring_tokens, forged_tokens)

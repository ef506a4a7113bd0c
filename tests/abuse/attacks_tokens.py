"""Attacks on a node that requires tokens. The honest client has a token."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time

import jwt

from tests.abuse.attacks_bodies import dear_bodies
from tests.abuse.target import Target, Unanswered, answer, call, expect, opened, post, request, send

USER, PASSWORD = "abuse", "an honest password"
GUESSING_LIMIT_S = 60.0


def token(target: Target, expires_at: float) -> bytes:
    claims = {"permissions": ["*:*"], "username": "abuse", "exp": expires_at}
    return b"Authorization: Bearer " + jwt.encode(claims, target.secret, "HS256").encode() + b"\r\n"


async def expiring_tokens(target: Target) -> None:
    """Attack with 1,500 connections that send requests while their token expires, from 40 ms before the expiry on."""
    async with contextlib.AsyncExitStack() as held:
        streams = [await held.enter_async_context(opened(target.http)) for _ in range(target.count(1500, 100))]
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
    """Attack with 4,000 connections with forged tokens. The node must not cache their request heads."""
    place = target.http
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


async def forged_json(target: Target) -> None:
    """Attack with expensive JSON, with a forged token and without a token. The node must not parse this JSON."""
    body = dear_bodies()["numbers"]
    for extra in (b"", b"Authorization: Bearer e30.e30.AAAA\r\n"):
        results = await asyncio.gather(
            *(post(target.http, body, extra) for _ in range(target.count(8, 2))), return_exceptions=True
        )
        for found in results:
            if not isinstance(found, OSError | Unanswered):
                assert not isinstance(found, BaseException), found
                expect(found[0] in (401, 503, 0), f"status {found[0]} for a forged token")


async def guessed_passwords(target: Target) -> None:
    """Attack with 500 connections that guess passwords, for one name and for many. The owner of the name can still log
    in.
    """
    place = target.ws
    began, least_s = time.monotonic(), max(2.0, 10 * target.scale)
    statuses: dict[int, int] = {}

    async def login(name: str, password: str) -> int:
        body = json.dumps({"username": name, "password": password}).encode()
        async with opened(place) as (reader, writer):
            head = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
            await send(writer, head + body)
            return (await answer(reader))[0]

    def goes_on() -> bool:
        """Return whether to continue guessing. On a busy machine, hashing may be so slow that the throttle is not
        active yet.
        """
        passed_s = time.monotonic() - began
        return passed_s < least_s or (429 not in statuses and passed_s < GUESSING_LIMIT_S)

    async def guess(number: int) -> None:
        turn = 0
        while goes_on():
            turn += 1
            name = "victim" if number % 2 else f"user{number}.{turn}"
            with contextlib.suppress(OSError, Unanswered):
                status = await login(name, f"guess {turn}")
                statuses[status] = statuses.get(status, 0) + 1

    expect(await login(USER, PASSWORD) == 200, "nobody can log in")
    guesses = [asyncio.create_task(guess(number)) for number in range(target.count(500, 20))]
    await asyncio.sleep(least_s / 2)
    expect(await login(USER, PASSWORD) == 200, "an honest user is locked out by others")
    await asyncio.gather(*guesses)
    expect(statuses.keys() <= {401, 429, 503, 0}, f"statuses {statuses}")
    expect(429 in statuses, "whoever guesses has not to wait")


ATTACKS = (expiring_tokens, forged_tokens, forged_json, guessed_passwords)

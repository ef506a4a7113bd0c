"""`POST /login` without a socket; with one: test_door.py."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import bcrypt

from ophion.rpc.auth.login import Login
from ophion.rpc.auth.roll import Roll
from ophion.rpc.auth.tokens import TokenIssuer
from ophion.rpc.transport.http.wire import Response
from ophion.rpc.transport.replies import Answer, Pending
from ophion.runtime.clock import ManualClock

HASH = bcrypt.hashpw(b"secret", bcrypt.gensalt(4, b"2a")).decode()


def run(tmp_path: Path, *bodies: bytes) -> list[Any]:
    users = tmp_path / "users.toml"
    users.write_text(f'[Users.ali]\npassword = "{HASH}"\npermissions = ["net:*"]')

    async def main() -> list[Any]:
        login = Login(users, TokenIssuer(), ManualClock())
        answers: list[Any] = [login.respond(body) for body in bodies]
        waits: dict[int, asyncio.Future[Any]] = {}
        for place, reply in enumerate(answers):
            if isinstance(reply, Pending):
                waits[place] = asyncio.get_running_loop().create_future()
                reply.deliver = waits[place].set_result
        for place, done in waits.items():
            answers[place] = await done
        login.close()
        return answers

    return asyncio.run(main())


def test_a_token_or_none(tmp_path: Path) -> None:
    good, wrong, malformed = run(
        tmp_path,
        b'{"username":"ali","password":"secret"}',
        b'{"username":"ali","password":"x"}',
        b"secret",
    )
    assert good.startswith(b'{"token":"')
    assert wrong == Answer(401, ())
    assert malformed == Response(400)


def test_the_queue_is_short(tmp_path: Path) -> None:
    answers = run(tmp_path, *[b'{"username":"ali","password":"x"}'] * 40)
    assert [answer.status for answer in answers].count(503) == 8


def test_a_file_that_was_changed_is_noticed_without_a_login(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text(f'[Users.ali]\npassword = "{HASH}"\npermissions = ["net:*"]')
    issuer = TokenIssuer(Roll())
    looked: list[int] = []
    issuer.changed.append(lambda: looked.append(1))

    async def main() -> None:
        login = Login(users, issuer, ManualClock())

        async def look() -> None:
            login._look(asyncio.get_running_loop())
            await login._lane.run(lambda: None)
            await asyncio.sleep(0)

        await look()
        await look()
        assert not looked, "nobody was there before"
        users.write_text(f'[Users.eve]\npassword = "{HASH}"')
        await look()
        assert looked == [1]
        users.write_text("[")
        await look()
        users.unlink()
        await look()
        assert looked == [1], "a file that cannot be read ends nobody's work"
        login.close()

    asyncio.run(main())

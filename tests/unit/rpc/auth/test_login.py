"""Tests `POST /login` without a socket. test_auth_setup.py uses sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bcrypt
import pytest

from ophion.rpc.auth import login as module
from ophion.rpc.auth.credentials import User, checked_user
from ophion.rpc.auth.login import Login
from ophion.rpc.auth.login_throttle import FREE
from ophion.rpc.auth.revocation import UserRevocations
from ophion.rpc.auth.tokens import TokenIssuer
from ophion.rpc.transport.http.messages import Response
from ophion.rpc.transport.replies import PendingReply
from ophion.runtime.clock import ManualClock

HASH = bcrypt.hashpw(b"secret", bcrypt.gensalt(4, b"2a")).decode()


HERE, THERE = "192.0.2.1", "192.0.2.2"


def wanted(name: str, password: str = "wrong") -> bytes:
    return f'{{"username":"{name}","password":"{password}"}}'.encode()


def run(tmp_path: Path, *attempts: tuple[bytes, str]) -> Sequence[Any]:
    """Return the answers to simultaneous logins from some addresses."""
    users = tmp_path / "users.toml"
    users.write_text(f'[Users.ali]\npassword = "{HASH}"\npermissions = ["net:*"]')

    async def main() -> Sequence[Any]:
        login = Login(users, TokenIssuer(), ManualClock())
        answers = await answered(login, *attempts)
        login.close()
        return answers

    return asyncio.run(main())


async def answered(login: Login, *attempts: tuple[bytes, str]) -> Sequence[Any]:
    answers: list[Any] = []
    waits: dict[int, asyncio.Future[Any]] = {}
    for place, attempt in enumerate(attempts):
        answers.append(reply := login.respond(*attempt))
        if isinstance(reply, PendingReply):
            waits[place] = asyncio.get_running_loop().create_future()
            reply.deliver = waits[place].set_result
    for place, done in waits.items():
        answers[place] = await done
    return answers


def test_a_token_or_none(tmp_path: Path) -> None:
    good, wrong, malformed = run(tmp_path, (wanted("ali", "secret"), HERE), (wanted("ali"), HERE), (b"secret", HERE))
    assert good.status == 200
    assert good.body[0].startswith(b'{"token":"')
    assert wrong == Response(401)
    assert malformed == Response(400)


def test_the_line_is_short(tmp_path: Path) -> None:
    answers = run(tmp_path, *((wanted(f"guess{number}"), HERE) for number in range(40)))
    # of 40 logins, one is being checked, 32 wait and 7 are refused
    assert [answer.status for answer in answers].count(503) == 7


def test_many_who_guess_do_not_keep_others_from_logging_in(tmp_path: Path) -> None:
    """If attempts from one address fill the queue, the node serves logins from other addresses and of known users
    first.
    """
    flood = [(wanted(f"guess{number}"), HERE) for number in range(40)]
    answers = run(tmp_path, *flood, (wanted("ali", "secret"), THERE), *flood)
    assert answers[40].status == 200

    async def main() -> None:
        users = tmp_path / "users.toml"
        login = Login(users, TokenIssuer(), ManualClock())
        assert (await answered(login, (wanted("ali", "secret"), HERE)))[0].status == 200
        assert (await answered(login, *flood, (wanted("ali", "secret"), HERE)))[40].status == 200
        login.close()

    asyncio.run(main())


def test_who_guesses_has_to_wait_longer_and_longer_and_others_do_not(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text(f'[Users.ali]\npassword = "{HASH}"\n[Users.bob]\npassword = "{HASH}"')
    clock = ManualClock()

    async def main() -> None:
        login = Login(users, TokenIssuer(), clock)

        async def status(name: str, address: str, password: str = "secret") -> int:
            answer = (await answered(login, (wanted(name, password), address)))[0]
            assert (b"Retry-After" in answer.headers) is (answer.status == 429)
            return int(answer.status)

        for _ in range(FREE):
            assert await status("ali", HERE, "wrong") == 401
        assert await status("ali", HERE) == 429, "even with the right password"
        assert await status("ali", THERE) == 200
        assert await status("bob", HERE) == 200
        clock.advance(1.0)
        assert await status("ali", HERE, "wrong") == 401
        clock.advance(1.0)
        assert await status("ali", HERE) == 429, "the pause has grown"
        clock.advance(1.0)
        assert await status("ali", HERE) == 200
        assert await status("ali", HERE, "wrong") == 401, "whoever has logged in begins anew"
        login.close()

    asyncio.run(main())


def test_guesses_at_the_same_time_are_not_cheaper_than_one_after_the_other(tmp_path: Path) -> None:
    answers = run(tmp_path, *[(wanted("ali"), HERE)] * 30)
    assert [answer.status for answer in answers].count(401) == FREE
    assert [answer.status for answer in answers].count(429) == 30 - FREE


def test_a_client_that_has_gone_leaves_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def noted(users: dict[str, User], name: str, password: str) -> User | None:
        hashed.append(name)
        return checked_user(users, name, password)

    monkeypatch.setattr(module, "checked_user", noted)
    users = tmp_path / "users.toml"
    users.write_text("")

    async def main() -> None:
        login = Login(users, TokenIssuer(), ManualClock())
        replies = [login.respond(wanted(f"guess{number}"), HERE) for number in range(5)]
        for reply in replies[:4]:
            assert isinstance(reply, PendingReply)
            reply.abandon()
        await answered(login, (wanted("last"), HERE))
        login.close()

    asyncio.run(main())
    assert hashed == ["guess0", "guess4", "last"]


def test_a_file_that_was_changed_is_noticed_without_a_login(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text(f'[Users.ali]\npassword = "{HASH}"\npermissions = ["net:*"]')
    issuer = TokenIssuer(UserRevocations())
    looked: list[int] = []
    issuer.changed.append(lambda: looked.append(1))

    async def main() -> None:
        login = Login(users, issuer, ManualClock())

        async def look() -> None:
            login._check_file(asyncio.get_running_loop())
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

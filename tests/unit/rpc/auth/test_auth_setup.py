"""Tests both services with authentication: login, and every method without permission."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import bcrypt
import jwt
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosedError

from ophion.errors import ConfigError, OphionError
from ophion.rpc.auth.auth_setup import AuthSetup, check
from ophion.rpc.auth.settings import AuthSettings, JwtAlgorithm
from ophion.rpc.endpoints.health import Health
from ophion.rpc.endpoints.services import HttpSettings, WebSocketSettings, http_service, method_table, websocket_service
from ophion.rpc.methods import all_methods
from ophion.rpc.schema.registry import HTTP, WEBSOCKET
from ophion.runtime.clock import ManualClock
from tests.unit.rpc.endpoints.test_services import exchange, serving
from tests.unit.rpc.interface import Interface

GROUPS = tuple(sorted({spec.group for spec in all_methods().specs}))
HASH = bcrypt.hashpw(b"secret", bcrypt.gensalt(4, b"2a")).decode()
USERS = f"""
[Users.all]
password = "{HASH}"
permissions = ["*:*"]
[Users.none]
password = "{HASH}"
permissions = []
[Users.some]
password = "{HASH}"
permissions = ["eth:blockNumber", "net:*", "eth:subscribe"]
"""


@pytest.fixture
def auth(tmp_path: Path) -> AuthSettings:
    path = tmp_path / "users.toml"
    path.write_text(USERS)
    return AuthSettings(path, clock=ManualClock())


def http(dev: Interface, auth: AuthSettings) -> Any:
    return http_service(dev.context, HttpSettings(port=0, groups=GROUPS, auth=AuthSetup(auth)), Health(lambda: None))


def websocket(dev: Interface, auth: AuthSettings) -> Any:
    return websocket_service(dev.context, WebSocketSettings(port=0, groups=GROUPS, auth=AuthSetup(auth)))


def request(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def post(port: int, path: str, body: Any, token: str | None = None) -> tuple[int, Any]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = [] if token is None else [f"Authorization: Bearer {token}"]
    head, _, answer = (await exchange(port, request(path, content, *headers))).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(answer) if answer else None


async def login(port: int, name: str, password: str = "secret") -> tuple[int, Any]:
    return await post(port, "/login", {"username": name, "password": password})


async def token_of(port: int, name: str) -> str:
    status, body = await login(port, name)
    assert status == 200
    token: str = body["token"]
    return token


@pytest.mark.parametrize("make", [http, websocket])
def test_logins_on_both_ports(dev: Interface, auth: AuthSettings, make: Callable[..., Any]) -> None:
    service = make(dev, auth)

    async def story() -> None:
        assert len((await token_of(service.port, "all")).split(".")) == 3
        assert await login(service.port, "all", "wrong") == (401, None)
        assert await login(service.port, "nobody") == (401, None)
        for body in (b"", b"{", b"[]", b"7", b'{"username":"all"}', b'{"username":1,"password":"x"}'):
            assert await post(service.port, "/login", body) == (400, None)
        assert (await post(service.port, "/login", b'"%b"' % (b"x" * 5000)))[0] == 413

    dev.run(serving(service, story))


def test_the_file_is_read_again_at_each_login(dev: Interface, auth: AuthSettings) -> None:
    service = http(dev, auth)
    assert auth.credentials_file is not None
    path = auth.credentials_file

    async def story() -> None:
        assert (await login(service.port, "new"))[0] == 401
        path.write_text(f'[Users.new]\npassword = "{HASH}"')
        assert (await login(service.port, "new"))[0] == 200
        assert (await login(service.port, "all"))[0] == 401
        path.write_text("[")
        assert (await login(service.port, "new"))[0] == 500

    dev.run(serving(service, story))


def test_tokens_end_with_the_credentials_they_were_made_from(dev: Interface, auth: AuthSettings) -> None:
    service = http(dev, auth)
    assert auth.credentials_file is not None
    path = auth.credentials_file
    call = {"id": 1, "method": "eth_blockNumber"}

    async def story() -> None:
        changed, gone, same = [await token_of(service.port, name) for name in ("all", "some", "none")]
        async with asyncio.timeout(10):
            for token, status in ((changed, 200), (gone, 200), (same, 401)):
                assert (await post(service.port, "/", call, token))[0] == status
            path.write_text(
                f'[Users.all]\npassword = "{HASH}"\npermissions = ["net:*"]\n[Users.none]\npassword = "{HASH}"\n'
            )
            await token_of(service.port, "none")  # each login reads the credentials file
            assert (await post(service.port, "/", {**call, "method": "net_version"}, changed))[0] == 401
            assert (await post(service.port, "/", call, gone))[0] == 401
            token = await token_of(service.port, "all")
            assert (await post(service.port, "/", {**call, "method": "net_version"}, token))[0] == 200
            assert (await post(service.port, "/", call, token))[0] == 401

    dev.run(serving(service, story))


def test_every_method_is_unreachable_over_http_without_permission(dev: Interface, auth: AuthSettings) -> None:
    service = http(dev, auth)
    table = method_table(dev.context, GROUPS, HTTP)
    enabled = [name for name in table.names if table[name].name]
    assert len(enabled) > 60

    async def story() -> None:
        token = await token_of(service.port, "none")
        for name in enabled:
            call = {"jsonrpc": "2.0", "id": 5, "method": name, "params": []}
            refused = {"jsonrpc": "2.0", "id": 5, "error": {"code": -40100, "message": "Unauthorized"}}
            assert await post(service.port, "/", call) == (401, {**refused, "id": None}), name
            assert await post(service.port, "/", call, "forged") == (401, refused), name
            assert await post(service.port, "/", call, token) == (401, refused), name
        batch = [{"id": number, "method": name, "params": []} for number, name in enumerate(enabled)]
        status, answers = await post(service.port, "/", batch, token)
        assert status == 200
        assert [answer["error"]["code"] for answer in answers] == [-40100] * len(enabled)
        for number, name in enumerate(table.names):
            if name not in enabled:
                call = {"id": number, "method": name, "params": []}
                assert (await post(service.port, "/", call, token))[1]["error"]["code"] == -32604, name

    dev.run(serving(service, story))


async def ask(socket: ClientConnection, name: str, *params: Any) -> Any:
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": 5, "method": name, "params": params}))
    return json.loads(await socket.recv())


def test_every_method_is_unreachable_over_websocket_without_permission(dev: Interface, auth: AuthSettings) -> None:
    service = websocket(dev, auth)
    table = method_table(dev.context, GROUPS, WEBSOCKET)
    enabled = [name for name in table.names if table[name].name]
    assert "eth_subscribe" in enabled

    async def story() -> None:
        token = await token_of(service.port, "none")
        for headers in ({}, {"Authorization": "Bearer forged"}, {"Authorization": f"Bearer {token}"}):
            async with connect(f"ws://localhost:{service.port}", additional_headers=headers) as socket:
                for name in enabled:
                    answer = await ask(socket, name)
                    assert answer == {
                        "jsonrpc": "2.0",
                        "id": 5,
                        "error": {"code": -40100, "message": "Unauthorized"},
                    }, name

    dev.run(serving(service, story))


def test_permissions_decide_method_by_method(dev: Interface, auth: AuthSettings) -> None:
    service = http(dev, auth)

    async def story() -> None:
        token = await token_of(service.port, "some")

        async def code(name: str) -> int | None:
            answer = (await post(service.port, "/", {"id": 1, "method": name}, token))[1]
            found: int | None = answer.get("error", {}).get("code")
            return found

        assert await code("eth_blockNumber") is None
        assert await code("net_version") is None
        assert await code("eth_chainId") == -40100
        assert await code("admin_peers") == -40100
        assert await code("eth_subscribe") == -32604

    dev.run(serving(service, story))


def test_a_socket_ends_with_its_token(dev: Interface, tmp_path: Path) -> None:
    key = tmp_path / "secret"
    key.write_text("s" * 40)
    clock = ManualClock()
    service = websocket(dev, AuthSettings(public_key_file=key, algorithm=JwtAlgorithm.HS256, clock=clock))

    def headers(seconds: float) -> dict[str, str]:
        claims = {"permissions": ["*:*"], "exp": clock.now() + seconds}
        return {"Authorization": f"Bearer {jwt.encode(claims, 's' * 40, 'HS256')}"}

    async def story() -> None:
        url = f"ws://localhost:{service.port}"
        async with (
            connect(url, additional_headers=headers(600)) as other,
            connect(url, additional_headers=headers(0.1)) as socket,
        ):
            assert "result" in await ask(other, "eth_subscribe", "newHeads")
            assert "result" in await ask(socket, "eth_subscribe", "newHeads")
            assert len(dev.context.subscriptions) == 2
            clock.advance(1)
            with pytest.raises(ConnectionClosedError) as closed:
                await socket.recv()
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "Token expired")
            assert "result" in await ask(other, "eth_blockNumber")
            assert len(dev.context.subscriptions) == 1, "what is not sent is not made either"

    dev.run(serving(service, story))


def test_tokens_of_one_service_are_worth_nothing_to_the_other(dev: Interface, auth: AuthSettings) -> None:
    first, second = http(dev, auth), websocket(dev, auth)

    async def inner() -> None:
        token = await token_of(second.port, "all")
        call = {"id": 1, "method": "eth_blockNumber"}
        assert (await post(first.port, "/", call, token))[0] == 401
        assert (await post(first.port, "/", call, await token_of(first.port, "all")))[0] == 200

    async def outer() -> None:
        await serving(second, inner)

    dev.run(serving(first, outer))


def test_what_needs_no_token(dev: Interface, auth: AuthSettings) -> None:
    service = http(dev, auth)

    async def story() -> None:
        for path, status in (("/", b"201"), ("/liveness", b"200"), ("/readiness", b"200")):
            get = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            assert (await exchange(service.port, get.encode())).split()[1] == status

    dev.run(serving(service, story))


def test_plain_http_to_the_socket_is_refused_as_ever(dev: Interface, auth: AuthSettings) -> None:
    service = websocket(dev, auth)

    async def story() -> None:
        for path in ("/", "/loginx"):
            answer = await exchange(service.port, request(path, b"{}"))
            assert answer.startswith(b"HTTP/1.1 400")
            assert answer.endswith(b"Websocket endpoint can't handle HTTP requests")

    dev.run(serving(service, story))


def test_with_an_external_issuer_there_is_no_login(dev: Interface, tmp_path: Path) -> None:
    key = tmp_path / "secret"
    key.write_text("s" * 40)
    service = http(dev, AuthSettings(public_key_file=key, algorithm=JwtAlgorithm.HS256))

    async def story() -> None:
        answer = await exchange(service.port, request("/login", b"{}"))
        assert answer.startswith(b"HTTP/1.1 400 Authentication not enabled\r\n")

    dev.run(serving(service, story))


def test_files_are_looked_at_before_anything_starts(tmp_path: Path, auth: AuthSettings) -> None:
    check(auth)
    with pytest.raises(OphionError, match="No such file"):
        check(AuthSettings(tmp_path / "none"))
    with pytest.raises(ConfigError, match="No such file"):
        check(AuthSettings(public_key_file=tmp_path / "none"))
    with pytest.raises(ConfigError, match="external public keys only"):
        check(AuthSettings(auth.credentials_file, algorithm=JwtAlgorithm.ES256))


def test_too_many_logins_are_asked_to_retry(dev: Interface, auth: AuthSettings) -> None:
    service = http(dev, auth)

    async def story() -> None:
        waits: list[Awaitable[tuple[int, Any]]] = [login(service.port, f"guess{one}") for one in range(80)]
        statuses = [status for status, _ in await asyncio.gather(*waits)]
        assert set(statuses) <= {401, 503}
        assert (await login(service.port, "all"))[0] == 200


@pytest.mark.parametrize("make", [http, websocket])
def test_who_guesses_a_password_has_to_wait(dev: Interface, auth: AuthSettings, make: Callable[..., Any]) -> None:
    service = make(dev, auth)

    async def story() -> None:
        statuses = [(await login(service.port, "all", "wrong"))[0] for _ in range(12)]
        assert statuses == [401] * 10 + [429] * 2
        assert (await login(service.port, "all"))[0] == 429
        assert (await login(service.port, "some"))[0] == 200

    dev.run(serving(service, story))


def test_interfaces_beside_http_ask_for_the_same_tokens(dev: Interface, auth: AuthSettings) -> None:
    setup = AuthSetup(auth)
    service = http_service(dev.context, HttpSettings(port=0, groups=GROUPS, auth=setup), Health(lambda: None))

    async def story() -> None:
        beside = setup.authenticator(None, asyncio.get_running_loop())
        assert beside.may(f"Bearer {await token_of(service.port, 'all')}".encode(), "eth_graphql")
        assert not beside.may(f"Bearer {await token_of(service.port, 'some')}".encode(), "eth_graphql")
        assert not beside.may(None, "eth_graphql")

    dev.run(serving(service, story))

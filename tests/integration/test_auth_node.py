"""A node with authentication, set up like an operator does: password hash, credentials file, login, calls."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from ophion.testing.node_process import COMMAND, NodeProcess, environment
from tests.integration.command import ophion
from tests.unit.rpc.tls.test_certificates import identity, pem_file


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    command = [*COMMAND, "password", "hash", "--password=pegasys"]
    hashed = subprocess.check_output(command, env=environment(), text=True)
    path = tmp_path_factory.mktemp("users") / "users.toml"
    ali = f'[Users.ali]\npassword = "{hashed}"\npermissions = ["net:*", "eth:blockNumber"]\n'
    ops = f'[Users.ops]\npassword = "{hashed}"\npermissions = ["*:*"]\n'
    path.write_text(ali + ops)
    return path


@pytest.fixture(scope="module")
def node(users: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    options = (
        "--network=dev",
        "--rpc-http-authentication-enabled",
        f"--rpc-http-authentication-credentials-file={users}",
        "--rpc-http-api-methods-no-auth=web3_clientVersion",
        "--rpc-ws-enabled",
        "--rpc-ws-port=0",
        "--rpc-ws-authentication-enabled",
        f"--rpc-ws-authentication-credentials-file={users}",
    )
    with NodeProcess(tmp_path_factory.mktemp("auth") / "data", *options) as running:
        yield running


def post(port: int, path: str, body: Any, token: str | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    connection.request("POST", path, json.dumps(body), headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, json.loads(content) if content else None


def login(port: int, name: str = "ali", password: str = "pegasys") -> tuple[int, Any]:
    return post(port, "/login", {"username": name, "password": password})


def test_http_from_login_to_answer(node: NodeProcess) -> None:
    port = node.ports["json-rpc"]
    status, body = login(port)
    assert status == 200
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
    assert post(port, "/", call, body["token"]) == (200, {"jsonrpc": "2.0", "id": 1, "result": "0x0"})
    refused = {"jsonrpc": "2.0", "id": 1, "error": {"code": -40100, "message": "Unauthorized"}}
    assert post(port, "/", {**call, "method": "eth_chainId"}, body["token"]) == (401, refused)
    assert post(port, "/", call, body["token"][:-4] + "AAAA") == (401, refused)
    assert post(port, "/", {**call, "method": "web3_clientVersion"})[0] == 200
    assert login(port, password="wrong") == (401, None)


def test_the_doctor_asks_with_a_token(node: NodeProcess, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{node.ports['json-rpc']}"
    refused = ophion("doctor", f"--rpc={url}", "--wait=0")
    assert (refused.code, f"{url} does not answer: HTTP status 401 Unauthorized" in refused.out) == (
        1,
        True,
    )
    (tmp_path / "token").write_text(login(node.ports["json-rpc"], "ops")[1]["token"])
    report = ophion("doctor", f"--rpc={url}", "--wait=0", f"--token-file={tmp_path / 'token'}").out
    assert report.startswith(f"{url}: ophion/")
    assert "does not answer" not in report


def test_websocket_from_login_to_answer(node: NodeProcess) -> None:
    port = node.ports["ws-rpc"]
    token = login(port)[1]["token"]
    with connect(f"ws://127.0.0.1:{port}", additional_headers={"Authorization": f"Bearer {token}"}) as socket:
        socket.send('{"id":1,"method":"eth_blockNumber"}')
        assert json.loads(socket.recv())["result"] == "0x0"
        socket.send('{"id":2,"method":"eth_subscribe","params":["newHeads"]}')
        assert json.loads(socket.recv())["error"]["code"] == -40100
    with connect(f"ws://127.0.0.1:{port}") as socket:
        socket.send('{"id":3,"method":"eth_blockNumber"}')
        assert json.loads(socket.recv()) == {
            "jsonrpc": "2.0",
            "id": 3,
            "error": {"code": -40100, "message": "Unauthorized"},
        }


def test_the_page_knows_which_services_require_a_token(users: Path, tmp_path: Path) -> None:
    """The page opens no WebSocket to a service that requires a token, because browsers cannot send a token in a
    handshake.
    """
    options = ("--rpc-ws-enabled", "--rpc-ws-port=0", "--page-http-enabled", "--page-http-port=0")
    asks = ("--rpc-ws-authentication-enabled", f"--rpc-ws-authentication-credentials-file={users}")
    with NodeProcess(tmp_path / "data", "--network=dev", *options, *asks) as node:
        with urllib.request.urlopen(f"http://127.0.0.1:{node.ports['page-http']}/nodes.json", timeout=60) as answer:
            status = json.loads(answer.read())
        assert (status["token"], status["socketToken"]) == (False, True)
        assert "jsonws" in status["services"], "programs can send one"


def test_answers_take_as_long_for_unknown_users_as_for_wrong_passwords(node: NodeProcess) -> None:
    port = node.ports["json-rpc"]

    def seconds(name: str) -> float:
        began = time.perf_counter()
        assert login(port, name, "wrong")[0] == 401
        return time.perf_counter() - began

    seconds("ali")
    # four pairs are fewer attempts than the login throttle allows (docs/security.md)
    pairs = [(seconds("ali"), seconds("bob")) for _ in range(4)]
    # the minimum excludes the effect of other load. Without a password hash for unknown users, `unknown` would be far
    # lower.
    wrong, unknown = (min(column) for column in zip(*pairs, strict=True))
    assert 0.3 < unknown / wrong < 3


def test_a_credentials_file_that_is_wrong_stops_the_node_with_one_line(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text("[Users.ali]\n")
    command = [
        *COMMAND,
        f"--data-path={tmp_path / 'data'}",
        "--rpc-http-enabled",
        "--rpc-http-authentication-enabled",
        f"--rpc-http-authentication-credentials-file={users}",
    ]
    ended = subprocess.run(command, env=environment(), text=True, capture_output=True, timeout=120, check=False)
    assert ended.returncode != 0
    assert "RPC user specified without password." in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_tls_on_both_services_with_certificates_of_clients(tmp_path: Path, users: Path) -> None:
    key, certificate = identity("node")
    store = pem_file(tmp_path / "node.pem", key, certificate)
    client = pem_file(tmp_path / "client.pem", *identity("client"))
    trust = client  # the trust store trusts a self-signed certificate like the certificate of an authority
    options = (
        "--network=dev",
        "--rpc-http-tls-enabled",
        f"--rpc-http-tls-keystore-file={store}",
        "--rpc-http-tls-client-auth-enabled",
        f"--rpc-http-tls-truststore-file={trust}",
    )

    def ask(port: int, context: ssl.SSLContext) -> int:
        connection = http.client.HTTPSConnection("localhost", port, timeout=60, context=context)
        connection.request("POST", "/", '{"id":1,"method":"eth_chainId"}')
        status = connection.getresponse().status
        connection.close()
        return status

    secure = (
        "--rpc-ws-enabled",
        "--rpc-ws-port=0",
        "--rpc-ws-ssl-enabled",
        f"--rpc-ws-ssl-keystore-file={store}",
        "--rpc-ws-authentication-enabled",
        f"--rpc-ws-authentication-credentials-file={users}",
    )
    with NodeProcess(tmp_path / "data", *options, *secure) as node:
        port, context = node.ports["ws-rpc"], ssl.create_default_context(cafile=str(store))
        login_over_tls = http.client.HTTPSConnection("localhost", port, timeout=60, context=context)
        login_over_tls.request("POST", "/login", '{"username":"ali","password":"pegasys"}')
        token = json.loads(login_over_tls.getresponse().read())["token"]
        login_over_tls.close()
        headers = {"Authorization": f"Bearer {token}"}
        with connect(f"wss://localhost:{port}", ssl=context, additional_headers=headers) as socket:
            socket.send('{"id":1,"method":"eth_blockNumber"}')
            assert json.loads(socket.recv())["result"] == "0x0"
        known = ssl.create_default_context(cafile=str(store))
        known.load_cert_chain(client)
        assert ask(node.ports["json-rpc"], known) == 200
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            ask(node.ports["json-rpc"], ssl.create_default_context(cafile=str(store)))
        assert node.stop() == 0


def test_graphql_asks_for_tokens_over_tls_even_where_http_is_off(tmp_path: Path, users: Path) -> None:
    permitted = tmp_path / "users.toml"
    permitted.write_text(users.read_text().replace('"eth:blockNumber"', '"eth:graphql"'))
    store = pem_file(tmp_path / "node.pem", *identity("node"))
    context = ssl.create_default_context(cafile=str(store))
    options = (
        "--network=dev",
        "--rpc-http-authentication-enabled",
        f"--rpc-http-authentication-credentials-file={permitted}",
        "--graphql-http-enabled",
        "--graphql-http-port=0",
        "--graphql-tls-enabled",
        f"--graphql-tls-keystore-file={store}",
        "--metrics-enabled",
        "--metrics-port=0",
        "--metrics-tls-enabled",
        f"--metrics-tls-keystore-file={store}",
    )

    def ask(service: str, path: str, body: str | None = None, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection("localhost", node.ports[service], timeout=60, context=context)
        connection.request("GET" if body is None else "POST", path, body, headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, content

    with NodeProcess(tmp_path / "data", *options, has_http=False) as node:
        assert ask("graphql-http", "/graphql", "{chainID}")[0] == 401
        status, content = ask("graphql-http", "/login", '{"username":"ali","password":"pegasys"}')
        assert status == 200
        header = f"Bearer {json.loads(content)['token']}"
        status, content = ask("graphql-http", "/graphql", "{chainID}", Authorization=header)
        assert (status, json.loads(content)) == (200, {"data": {"chainID": "0x7e2"}})
        send = 'mutation{sendRawTransaction(data:"0x00")}'
        assert ask("graphql-http", "/graphql", send, Authorization=header)[0] == 401
        assert b"ethereum_blockchain_height 0" in ask("metrics", "/metrics")[1]
        assert "no effect unless" not in node.output()
        assert node.stop() == 0

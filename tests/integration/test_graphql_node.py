"""Tests GraphQL of a real process: hosts, origins, headers, late answers, and attacks while honest clients send
requests.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction

OPTIONS = (
    *MINING,
    "--graphql-http-enabled",
    "--graphql-http-port=0",
    "--graphql-http-cors-origins=http://page.example",
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("graphql") / "data", *OPTIONS) as process:
        for nonce in range(30):
            hash = process.send(legacy_transaction(DEV_KEYS[1], nonce, value=1))
        process.receipt(hash)
        yield process


def connection(node: NodeProcess) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", node.ports["graphql-http"], timeout=60)


def exchange(
    node: NodeProcess, method: str, path: str, body: str | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    client = connection(node)
    try:
        client.request(method, path, body, dict(headers or {}))
        response = client.getresponse()
        return response.status, response.headers, response.read()
    finally:
        client.close()


def ask(node: NodeProcess, document: str, **variables: Any) -> Any:
    body = json.dumps({"query": document, "variables": variables})
    status, headers, answer = exchange(node, "POST", "/graphql", body, {"Content-Type": "application/json"})
    assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8"), answer
    return json.loads(answer)["data"]


def test_the_port_is_in_the_ports_file_and_in_net_services(node: NodeProcess) -> None:
    assert node.ports["graphql-http"] > 0
    head = node.height
    assert ask(node, "{block{number}}") == {"block": {"number": head}}


def test_answers_that_come_later_have_the_same_headers(node: NodeProcess) -> None:
    shown = ask(node, "{gasPrice pending{transactionCount}}")
    assert shown == {"gasPrice": node.rpc("eth_gasPrice"), "pending": {"transactionCount": 0}}
    deep = "{blocks(from:0){transactions{block{transactions{block{transactions{hash}}}}}}}"
    assert len(ask(node, deep)["blocks"]) == node.height + 1
    shown = ask(node, "{block{estimateGas(data:{}) call(data:{}){status}}}")["block"]
    assert shown == {"estimateGas": int(node.rpc("eth_estimateGas", {}, "latest"), 16), "call": {"status": 1}}


def test_a_sent_transaction_is_mined(node: NodeProcess) -> None:
    raw = "0x" + legacy_transaction(DEV_KEYS[2], 0, value=7).hex()
    hash = ask(node, "mutation($d:Bytes!){sendRawTransaction(data:$d)}", d=raw)["sendRawTransaction"]
    node.receipt(hash)
    shown = ask(node, "query($h:Bytes32!){transaction(hash:$h){value status}}", h=hash)
    assert shown == {"transaction": {"value": "0x7", "status": 1}}


def test_hosts_that_are_not_listed_are_refused(node: NodeProcess) -> None:
    for path in ("/graphql?query={chainID}", "/", "/graphql/ui"):
        status, _, body = exchange(node, "GET", path, headers={"Host": "evil.example"})
        assert (status, json.loads(body)) == (403, {"message": "Host not authorized."})


def test_pages_of_other_origins_are_refused(node: NodeProcess) -> None:
    path = "/graphql?query={chainID}"
    status, headers, _ = exchange(node, "GET", path, headers={"Origin": "http://page.example"})
    assert (status, headers["Access-Control-Allow-Origin"]) == (200, "http://page.example")
    assert exchange(node, "GET", path, headers={"Origin": "http://evil.example"})[0] == 403
    own = f"http://127.0.0.1:{node.ports['graphql-http']}"
    assert exchange(node, "GET", path, headers={"Origin": own})[0] == 200
    asking = {"Origin": "http://page.example", "Access-Control-Request-Method": "POST"}
    status, headers, _ = exchange(node, "OPTIONS", "/graphql", headers=asking)
    assert status == 200
    assert "content-type" in headers["Access-Control-Allow-Headers"]


def test_the_page_and_its_files_are_served(node: NodeProcess) -> None:
    for path in ("/graphql", "/graphql/ui", "/graphql/ui/editor/page.js", "/graphql/ui/page.css"):
        status, headers, body = exchange(node, "GET", path, headers={"Accept": "text/html"})
        assert status == 200
        assert body
        assert "default-src 'none'" in headers["Content-Security-Policy"]


def test_requests_on_one_connection_are_answered_in_order(node: NodeProcess) -> None:
    client = connection(node)
    for at in range(20):
        is_late = at % 3 == 0
        client.request("POST", "/graphql", "{gasPrice}" if is_late else "{block(number:" + str(at % 2) + "){number}}")
        data = json.loads(client.getresponse().read())["data"]
        assert data == ({"gasPrice": node.rpc("eth_gasPrice")} if is_late else {"block": {"number": at % 2}})
    client.close()


def test_the_node_keeps_answering_under_attack(node: NodeProcess) -> None:
    attacks = [
        "{block" + "{parent" * 1000 + "{number}" + "}" * 1001,
        "{" + " ".join(f"a{at}:block{{number}}" for at in range(20_000)) + "}",
        "{...A} fragment A on Query{...B} fragment B on Query{...A}",
        "{blocks(from:0){transactions" + "{block{transactions" * 12 + "{hash}" + "}}" * 12 + "}}",
        "x" * 3_000_000,
        '{block(hash:"' + "0" * 3_000_000 + '"){number}}',
    ]
    waiting = []
    for attack in attacks:
        client = connection(node)
        client.request("POST", "/graphql", attack)
        waiting.append(client)
    assert ask(node, "{block(number:0){number}}") == {"block": {"number": 0}}
    for client in waiting:
        response = client.getresponse()
        assert response.status in (200, 400), response.read()
        response.read()
        client.close()
    assert node.is_running


def test_a_body_that_is_too_long_is_refused(node: NodeProcess) -> None:
    assert exchange(node, "POST", "/graphql", " " * (5 * 1024 * 1024))[0] == 413


def test_limits_are_options(tmp_path: Path) -> None:
    limits = ("--graphql-max-depth=2", "--graphql-max-blocks=1", "--graphql-hex-integers-enabled")
    with NodeProcess(tmp_path / "data", *OPTIONS, *limits) as process:
        assert ask(process, "{block(number:0){number gasLimit timestamp transactionCount}}")["block"].items() >= {
            ("number", "0x0"),
            ("transactionCount", "0x0"),
        }
        status, _, body = exchange(process, "POST", "/graphql", "{block{parent{number}}}")
        assert (status, b"maximum query depth exceeded" in body) == (400, True)


def test_long_answers_arrive_whole(node: NodeProcess) -> None:
    """Long answers are sent without copying, even several at the same time."""
    names = [f"b{at}" for at in range(300)]
    document = "{blocks(from:0){" + " ".join(f"{name}:logsBloom" for name in names) + "}}"
    waiting = []
    for _ in range(6):
        client = connection(node)
        client.request("POST", "/graphql", document)
        waiting.append(client)
    answers = set()
    for client in waiting:
        answers.add(client.getresponse().read())
        client.close()
    (answer,) = answers
    assert len(answer) > 100_000
    for block in json.loads(answer)["data"]["blocks"]:
        assert list(block) == names


def test_the_option_is_needed(tmp_path: Path) -> None:
    with NodeProcess(tmp_path / "data", "--network=dev") as process:
        assert "graphql-http" not in process.ports


def test_where_json_rpc_asks_for_a_token_so_does_graphql(tmp_path: Path) -> None:
    bcrypt = pytest.importorskip("bcrypt")
    password = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    users = tmp_path / "users.toml"
    users.write_text(f'[Users.reader]\npassword = "{password}"\npermissions = ["eth:graphql"]\n')
    security = ("--rpc-http-authentication-enabled", f"--rpc-http-authentication-credentials-file={users}")
    with NodeProcess(tmp_path / "data", *OPTIONS, *security) as process:
        assert exchange(process, "POST", "/graphql", "{chainID}")[0] == 401
        client = http.client.HTTPConnection("127.0.0.1", process.ports["json-rpc"], timeout=60)
        client.request("POST", "/login", json.dumps({"username": "reader", "password": "secret"}))
        token = json.loads(client.getresponse().read())["token"]
        headers = {"Authorization": f"Bearer {token}"}
        assert exchange(process, "POST", "/graphql", "{chainID}", headers)[0] == 200
        assert exchange(process, "POST", "/graphql", 'mutation{sendRawTransaction(data:"0x")}', headers)[0] == 401

"""Tests paths, methods, request formats and statuses of GraphQL over HTTP."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from ophion.graphql.http import QUERY_PERMISSION, SEND_PERMISSION
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.policy import HttpLimits, HttpPolicy
from ophion.rpc.transport.origins import OriginList
from tests.unit.graphql.client import JSON_TYPE, Client, parsed
from tests.unit.rpc.wire import MemoryTransport, Panic, patient

NUMBER = {"data": {"block": {"number": 32}}}
DOCUMENT = "{block{number}}"
HTML = {b"accept": b"text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("path", [b"/graphql", b"/graphql/"])
def test_the_four_forms_of_a_request_are_equal(client: Client, path: bytes) -> None:
    body = json.dumps({"query": DOCUMENT}).encode()
    address = quote(DOCUMENT).encode()
    assert parsed(client.respond(b"GET", path, b"query=" + address)) == (200, NUMBER)
    for kind in (b"application/json", b"application/json; charset=utf-8", b"Application/JSON"):
        assert parsed(client.respond(b"POST", path, b"", {b"content-type": kind}, body)) == (200, NUMBER)
    for headers in ({b"content-type": b"application/graphql"}, {b"content-type": b"text/plain"}, {}):
        assert parsed(client.respond(b"POST", path, b"", headers, DOCUMENT.encode())) == (200, NUMBER)


def test_operation_and_variables_travel_in_every_form(client: Client) -> None:
    document = "query A($n:Long){block(number:$n){number}} query B{chainID}"
    assert client.ask(document, {"n": "0x1e"}, "A") == {"block": {"number": 30}}
    assert client.ask(document, None, "B") == {"chainID": "0x1"}
    assert client.get(query=document, operationName="A", variables='{"n":7}') == (
        200,
        {"data": {"block": {"number": 7}}},
    )
    assert client.get(query=document, operationName="B", variables="") == (200, {"data": {"chainID": "0x1"}})


def test_unknown_members_and_any_accept_header_pass(client: Client) -> None:
    body = json.dumps({"query": DOCUMENT, "extensions": {"x": 1}, "more": [1]}).encode()
    headers = {b"content-type": JSON_TYPE, b"accept": b"multipart/mixed, application/graphql-response+json"}
    assert parsed(client.respond(b"POST", headers=headers, body=body)) == (200, NUMBER)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"[" * 10_000, b'"x"', b'{"query":5}', b'{"query":"{a}","operationName":[]}', b"\xff\xfe"],
)
def test_a_broken_json_body_is_status_400(client: Client, body: bytes) -> None:
    status, answer = parsed(client.respond(b"POST", headers={b"content-type": JSON_TYPE}, body=body))
    assert (status, list(answer)) == (400, ["errors"])


def test_a_query_of_thousands_of_fields_is_not_taken_apart(client: Client) -> None:
    status, answer = parsed(client.respond(b"GET", query=b"query={block{number}}&" + b"a&" * 20_000))
    assert (status, list(answer)) == (400, ["errors"])


@pytest.mark.parametrize("variables", ["[]", "5", '"x"', "{", '{"n":}'])
def test_broken_variables_are_status_400(client: Client, variables: str) -> None:
    status, answer = client.get(query="query($n:Long){block(number:$n){number}}", variables=variables)
    assert (status, list(answer)) == (400, ["errors"])


@pytest.mark.parametrize("body", [b"{}", b'{"query":null}', b'{"query":""}'])
def test_a_missing_query_is_an_empty_document(client: Client, body: bytes) -> None:
    status, answer = parsed(client.respond(b"POST", headers={b"content-type": JSON_TYPE}, body=body))
    assert (status, list(answer)) == (400, ["errors"])
    assert answer["errors"][0]["message"].startswith("Invalid Syntax")
    assert answer["errors"][0]["extensions"] == {"classification": "InvalidSyntax"}
    assert client.get() == (400, answer)
    assert parsed(client.respond(b"POST")) == (400, answer)


def test_a_document_that_is_no_text_is_status_400(client: Client) -> None:
    assert parsed(client.respond(b"POST", body=b"{\xff}"))[0] == 400


def test_other_methods_and_paths_are_not_served(client: Client) -> None:
    for method in (b"PUT", b"DELETE", b"PATCH", b"HEAD", b"OPTIONS"):
        response = client.respond(method)
        assert response.status == 405
        assert response.headers == b"Allow: GET, POST, OPTIONS\r\n"
    for path in (b"/graphql2", b"/graphql/x", b"/x", b"/graphqlui"):
        assert client.respond(b"GET", path).status == 404
        assert client.respond(b"POST", path).status == 404


def test_the_root_serves_load_balancers_and_leads_people_to_the_page(client: Client) -> None:
    assert client.respond(b"GET", b"/").status == 201
    for method, headers in ((b"GET", HTML), (b"POST", {})):
        response = client.respond(method, b"/", headers=headers)
        assert (response.status, response.headers) == (308, b"Location: /graphql\r\n")
    assert client.respond(b"PUT", b"/").status == 404


def test_browsers_get_the_page_and_queries_in_the_address_still_answer(client: Client) -> None:
    response = client.respond(b"GET", headers=HTML)
    assert (response.status, response.content_type) == (200, b"text/html; charset=utf-8")
    assert parsed(client.respond(b"GET", query=b"query=" + quote(DOCUMENT).encode(), headers=HTML)) == (200, NUMBER)


def test_mutations_come_by_post_alone(client: Client) -> None:
    status, answer = client.get(query='mutation{sendRawTransaction(data:"0x")}')
    assert (status, list(answer)) == (405, ["errors"])


def test_where_tokens_are_asked_for_nothing_is_open(client: Client) -> None:
    allowed: set[tuple[bytes | None, str]] = {
        (b"Bearer reader", QUERY_PERMISSION),
        (b"Bearer sender", QUERY_PERMISSION),
        (b"Bearer sender", SEND_PERMISSION),
    }
    guarded = Client(client.rpc, guard=lambda authorization, method: (authorization, method) in allowed)
    mutation = b'mutation{sendRawTransaction(data:"0x")}'

    def status(body: bytes, authorization: bytes | None) -> int:
        headers = {} if authorization is None else {b"authorization": authorization}
        return guarded.respond(b"POST", headers=headers, body=body).status

    assert [status(DOCUMENT.encode(), token) for token in (None, b"Bearer x", b"Bearer reader")] == [401, 401, 200]
    assert [status(mutation, token) for token in (None, b"Bearer reader", b"Bearer sender")] == [401, 401, 400]
    assert guarded.respond(b"GET", query=b"query={chainID}").status == 401
    assert guarded.respond(b"GET", headers=HTML).status == 200, "the page itself is no secret"


def test_a_panic_of_the_extension_is_an_answer(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    def panics(authorization: bytes | None, method: str) -> bool:
        raise Panic("index out of bounds")

    broken = Client(client.rpc, guard=panics)
    assert parsed(broken.respond(b"POST", body=DOCUMENT.encode())) == (
        500,
        {"errors": [{"message": "Internal error"}]},
    )
    assert "index out of bounds" in caplog.text


def test_a_long_request_is_read_in_the_lane_and_answered_alike(client: Client) -> None:
    gap = " " * 100_000
    assert client.ask("{" + gap + "block{number}}") == NUMBER["data"]
    assert client.errors("{" + gap + "nothing}")[0]["extensions"] == {"classification": "ValidationError"}
    assert client.ask("{" + gap + "blocks(from:0){number}}")["blocks"][32] == {"number": 32}


def test_a_closed_database_is_status_500_without_a_traceback(dev: Client) -> None:
    dev.rpc.node.chain.store.close()
    status, answer = dev.post(DOCUMENT)
    assert (status, list(answer)) == (500, ["errors"])
    assert "Traceback" not in json.dumps(answer)


def conversation(client: Client, requests: list[bytes]) -> tuple[list[bytes], PlainHeads]:
    """Return the answers of a connection to a sequence of requests, and the request heads that the connection then
    knows.
    """
    transport, heads = MemoryTransport(), PlainHeads()

    async def main() -> list[bytes]:
        policy = HttpPolicy(
            client.application,
            HostList(["localhost"]),
            OriginList([]),
            HttpLimits(),
            heads,
            lambda connection: True,
            lambda connection: None,
            shared=patient(),
        )
        connection = HttpConnection(policy)
        connection.connection_made(transport)
        found = []
        for request in requests:
            connection.data_received(request)
            found.append(transport.take())
        return found

    return client.rpc.run(main()), heads


def request(body: bytes, kind: bytes, path: bytes = b"/graphql") -> bytes:
    lines = (
        b"POST %b HTTP/1.1" % path,
        b"Host: localhost",
        b"Content-Type: " + kind,
        b"Content-Length: %d" % len(body),
    )
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def test_a_head_that_has_been_seen_before_is_answered_alike(client: Client) -> None:
    body = json.dumps({"query": DOCUMENT}).encode()
    broken = b"{" * len(body)
    first, second, bad, again = (
        request(one, kind)
        for one, kind in ((body, JSON_TYPE), (body, JSON_TYPE), (broken, JSON_TYPE), (body, b"application/json;x=y"))
    )
    answers, heads = conversation(client, [first, second, bad, again])
    assert len(heads.sizes) == 2
    assert answers[0] == answers[1] == answers[3]
    assert answers[0].startswith(b"HTTP/1.1 200 ")
    assert b"Content-Type: application/json; charset=utf-8\r\n" in answers[0]
    assert json.loads(answers[0].partition(b"\r\n\r\n")[2]) == NUMBER
    assert answers[2].startswith(b"HTTP/1.1 400 ")


def test_only_heads_that_mean_json_for_this_path_are_known_by_their_bytes(client: Client) -> None:
    others = [
        request(DOCUMENT.encode(), b"application/graphql"),
        request(json.dumps({"query": DOCUMENT}).encode(), JSON_TYPE, b"/graphql/"),
        request(json.dumps({"query": DOCUMENT}).encode(), JSON_TYPE, b"/graphql?a=b"),
    ]
    answers, heads = conversation(client, others * 2)
    assert heads.sizes == {}
    assert {answer.partition(b" ")[2][:3] for answer in answers} == {b"200"}


def test_where_tokens_are_asked_for_no_head_is_known(client: Client) -> None:
    guarded = Client(client.rpc, guard=lambda authorization, method: authorization == b"Bearer good")
    body = request(json.dumps({"query": DOCUMENT}).encode(), JSON_TYPE)
    allowed = body.replace(b"\r\n", b"\r\nAuthorization: Bearer good\r\n", 1)
    answers, heads = conversation(guarded, [allowed, allowed, body])
    assert heads.sizes == {}
    assert [answer.partition(b" ")[2][:3] for answer in answers] == [b"200", b"200", b"401"]

"""Hostile requests end early, with an error that names the limit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ophion.graphql.limits import GraphqlLimits
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.graphql.client import JSON_TYPE, Client, original_chain, parsed

HOSTILE = {
    "depth": "{block" + "{parent" * 1000 + "{number}" + "}" * 1001,
    "great depth": "{block" + "{parent" * 100_000 + "{number}" + "}" * 100_001,
    "deep lists": "{logs(filter:{topics:" + "[" * 5000 + "]" * 5000 + "}){index}}",
    "aliases": "{" + " ".join(f"a{at}:block{{number}}" for at in range(20_000)) + "}",
    "a fragment in a circle": "{...A} fragment A on Query{...B} fragment B on Query{...A}",
    "a fragment in itself": "{...A} fragment A on Query{block{number} ...A}",
    "fragments that double": "{...F0} "
    + " ".join(f"fragment F{at} on Query{{...F{at + 1} ...F{at + 1}}}" for at in range(40))
    + " fragment F40 on Query{chainID}",
    "fragments that double below": "{block{...F0}} "
    + " ".join(f"fragment F{at} on Block{{a:parent{{...F{at + 1}}} b:parent{{...F{at + 1}}}}}" for at in range(20))
    + " fragment F20 on Block{number}",
    "unknown fields": "{" + "nothing " * 4000 + "}",
    "the same field": "{" + "chainID " * 20_000 + "}",
    "directives": "{chainID " + "@include(if:true) " * 3000 + "}",
    "introspection that nests": "{__schema{types{fields{type{fields{type{fields{type{name}}}}}}}}}",
    "introspection again and again": "{"
    + " ".join(f"s{at}:__schema{{types{{name fields{{name}}}}}}" for at in range(300))
    + "}",
    "introspection in fragments that double": "{__schema{...F0}} "
    + " ".join(f"fragment F{at} on __Schema{{...F{at + 1} ...F{at + 1}}}" for at in range(40))
    + " fragment F40 on __Schema{types{name}}",
    "a long name": "{" + "a" * 3_000_000 + "}",
    "many calls": "{block{" + " ".join(f"c{at}:call(data:{{}}){{status}}" for at in range(200)) + "}}",
}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Open Pantheon's chain with limits that its 32 blocks can reach."""
    limits = GraphqlLimits(max_blocks=10, max_logs=3, max_cost=20_000, max_answer_bytes=200_000)
    with original_chain(tmp_path_factory.mktemp("narrow"), limits) as client:
        yield client


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_refused_at_once(client: Client, name: str) -> None:
    status, answer = client.post(HOSTILE[name])
    assert (status, next(iter(answer))) == (400, "errors")
    assert len(answer["errors"]) <= 50
    assert client.ask("{block{number}}") == {"block": {"number": 32}}


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"to":', "}")])
@pytest.mark.parametrize(
    ("kind", "use"),
    [
        ("Long", "miner(block:$v){address}"),
        ("CallData!", "call(data:$v){status}"),
        ("[[Bytes32!]!]", "logs(filter:{topics:$v}){index}"),
    ],
)
def test_variables_that_nest_are_refused(client: Client, opening: str, closing: str, kind: str, use: str) -> None:
    document = "query($v:" + kind + "){block{" + use + "}}"
    nested = opening * 100_000 + "1" + closing * 100_000
    body = json.dumps({"query": document, "variables": {"v": 0}}).replace('"v": 0', '"v": ' + nested)
    status, answer = parsed(client.respond(b"POST", headers={b"content-type": JSON_TYPE}, body=body.encode()))
    assert (status, answer["errors"][0]["message"]) == (
        400,
        "Variable 'v' has an invalid value: it has more than 16 levels",
    )


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({f"v{at}": at for at in range(1001)}, "more than 1000 variables"),
        ({"v": [["0x1"]] * 10_001}, "Variable 'v' has an invalid value: it has more than 10000 values"),
    ],
    ids=["variables", "values"],
)
def test_variables_are_bounded(client: Client, variables: dict[str, Any], message: str) -> None:
    document = "query($v:[[Bytes32!]!]){logs(filter:{topics:$v}){index}}"
    assert client.error(document, variables)["message"] == message


def test_messages_do_not_repeat_what_is_long(client: Client) -> None:
    assert client.error(HOSTILE["a long name"])["message"].endswith("a name of more than 256 letters")
    field = "a" * 256
    document = "{" + f"{field}:block{{" * 8 + "nothing" + "}" * 9
    assert all(len(error["message"]) < 1100 for error in client.errors(document))


def test_answers_that_multiply_are_stopped(dev: Client) -> None:
    transactions = [legacy_transaction(DEV_KEYS[0], nonce) for nonce in range(40)]
    dev.rpc.run(dev.rpc.node.mine(*transactions))
    document = "{block{transactions" + "{block{transactions" * 6 + "{hash}" + "}}" * 6 + "}}"
    error = dev.error(document)
    assert error["extensions"] == {"classification": "ExecutionAborted"}


def test_a_range_of_blocks_is_bounded(narrow: Client) -> None:
    assert len(narrow.ask("{blocks(from:23){number}}")["blocks"]) == 10
    error = narrow.error("{blocks(from:0){number}}")
    assert error["extensions"]["errorCode"] == -32005
    assert error["message"].endswith("Requested range exceeds maximum RPC range limit")


def test_a_range_may_be_without_limit(client: Client) -> None:
    assert len(Client(client.rpc, GraphqlLimits(max_blocks=0)).ask("{blocks(from:0){number}}")["blocks"]) == 33


def test_the_response_buffer_fits_one_long_answer() -> None:
    assert list(GraphqlLimits().problems()) == []
    (problem,) = GraphqlLimits(max_answer_bytes=2**20, max_held_bytes=2**19).problems()
    assert "--graphql-max-held-size" in problem


def test_logs_are_bounded(narrow: Client) -> None:
    """The node refuses a request for the logs of too many blocks, and a request for too many logs."""
    assert narrow.error("{logs(filter:{fromBlock:0}){index}}")["extensions"]["errorCode"] == -32005
    address = "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f"
    error = narrow.error('{logs(filter:{fromBlock:0,addresses:["' + address + '"]}){index}}')
    assert error["extensions"]["errorCode"] == -32005
    assert error["message"].endswith("Too many logs match; ask for fewer blocks")


def test_work_and_size_of_an_answer_are_bounded(narrow: Client) -> None:
    deep = "{blocks(from:23){" + "parent{" * 20 + "number" + "}" * 20 + "}}"
    assert narrow.post(deep)[0] == 200
    text = "{block{" + " ".join(f'a{at}:account(address:"0x{at:040x}"){{balance}}' for at in range(300)) + "}}"
    assert narrow.error(text) == {
        "message": "maximum query complexity exceeded: it asks for too many values",
        "extensions": {"classification": "ExecutionAborted"},
    }
    raw = "{blocks(from:23){" + " ".join(f"b{at}:raw" for at in range(400)) + "}}"
    assert narrow.error(raw)["message"].startswith("maximum "), "long values count by their length"
    blooms = "{blocks(from:23){" + " ".join(f"b{at}:logsBloom" for at in range(100)) + "}}"
    assert narrow.error(blooms)["message"] == "maximum answer size exceeded"


def test_many_states_in_one_answer_need_few_readers_of_the_database(dev: Client) -> None:
    for _ in range(1100):
        dev.rpc.run(dev.rpc.node.seal())
    account = 'account(address:"0x0000000000000000000000000000000000000001"){balance}'
    ranges = [f"r{at}:blocks(from:{at * 300},to:{at * 300 + 299})" for at in range(4)]
    document = "{" + " ".join(f"{one}{{{account}}}" for one in ranges) + "}"
    assert len(dev.ask(document)["r3"]) == 201


def test_calls_of_one_request_are_bounded(client: Client) -> None:
    calls = "{block{" + " ".join(f"c{at}:call(data:{{}}){{status}}" for at in range(64)) + "}}"
    assert client.post(calls)[0] == 200
    assert client.errors(HOSTILE["many calls"])[0]["message"].endswith("more than 64 calls in one request")


def test_requests_with_calls_are_bounded_too(client: Client) -> None:
    busy = Client(client.rpc)
    busy.application._open_rounds = 128
    status, answer = busy.post("{block{call(data:{}){status}}}")
    assert (status, answer["errors"][0]["extensions"]["errorCode"]) == (503, -32005)
    assert busy.ask("{block{number}}") == {"block": {"number": 32}}


def test_a_request_out_of_time_is_stopped(client: Client) -> None:
    impatient = Client(client.rpc)
    impatient.application._timeout_s = 0.0
    status, answer = impatient.post("{blocks(from:0){transactions{hash}}}")
    assert status in (400, 408)
    assert answer["errors"][0]["message"] == "Timeout expired"

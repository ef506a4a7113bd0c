"""Tests every rule of graphql.md 5, 6 and 7.2 that a request can show, on Pantheon's chain (head 32)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.graphql.client import JSON_TYPE, Client, original_chain, parsed

ACCOUNT = "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f"
BLOCK_30 = "0xc8df1f061abb4d0c107b2b1a794ade8780b3120e681f723fe55a7be586d95ba6"
CREATION = "0x812742182a79a8e67733edc58cfa3767aa2d7ad06439d156ddbbb33e3403b4ed"
NOTHING = "0x" + "ff" * 32
TOPIC = "0x65c9ac8011e286e89d02a269890f41d67ca2cc597b2c76c7c69321ff492be580"
WORD = "0x" + "0" * 64
NAMES = {"$account": ACCOUNT, "$block30": BLOCK_30, "$creation": CREATION, "$nothing": NOTHING, "$topic": TOPIC}
INVALID_PARAMS = (-32602, "Invalid params")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with original_chain(tmp_path_factory.mktemp("reference")) as opened:
        yield opened


def filled(document: str) -> str:
    """Return the document with each placeholder replaced by the quoted hash that it names."""
    for name, value in NAMES.items():
        document = document.replace(name, json.dumps(value))
    return document


ANSWERS: list[tuple[str, Any]] = [
    # these cases test the field `block`
    ("{block{number}}", {"block": {"number": 32}}),
    ("{block(number:null,hash:null){number}}", {"block": {"number": 32}}),
    ("{block(hash:$block30){number}}", {"block": {"number": 30}}),
    ("{block(hash:null,number:30){hash}}", {"block": {"hash": BLOCK_30}}),
    ("{block(number:0){parent{number} ommers{number} transactions{hash} logs(filter:{}){index}}}",
     {"block": {"parent": None, "ommers": [], "transactions": [], "logs": []}}),
    ("{block(number:30){transactionAt(index:1){hash} ommerAt(index:0){hash} n:transactionAt(index:-1){hash}}}",
     {"block": {"transactionAt": None, "ommerAt": None, "n": None}}),
    # these cases test the field `blocks`
    ("{blocks(from:30){number}}", {"blocks": [{"number": 30}, {"number": 31}, {"number": 32}]}),
    ('{blocks(from:"0x1e",to:"31"){number}}', {"blocks": [{"number": 30}, {"number": 31}]}),
    ("{blocks(from:32,to:900){number}}", {"blocks": [{"number": 32}]}),
    ("{blocks(from:33,to:900){number}}", {"blocks": []}),
    ("{blocks(from:32,to:null){number}}", {"blocks": [{"number": 32}]}),
    # these cases test the field `transaction`
    ("{transaction(hash:$nothing){hash}}", {"transaction": None}),
    ("{transaction(hash:$creation){index to{address} status gas gasUsed cumulativeGasUsed logs{index} nonce}}",
     {"transaction": {"index": 0, "to": None, "status": None, "gas": 3141592, "gasUsed": 493172,
                      "cumulativeGasUsed": 493172, "logs": [], "nonce": 0}}),
    ("{transaction(hash:$creation){createdContract{address balance} c:createdContract(block:0){address balance code}}}",
     {"transaction": {"createdContract": {"address": ACCOUNT, "balance": "0xa"},
                      "c": {"address": ACCOUNT, "balance": "0x0", "code": "0x"}}}),
    # these cases test the field `account`
    ("{account(address:$account){balance transactionCount}}",
     {"account": {"balance": "0x140", "transactionCount": 0}}),
    ("{account(address:$account,blockNumber:null){balance}}", {"account": {"balance": "0x140"}}),
    ('{account(address:$account,blockNumber:"0x19"){balance}}', {"account": {"balance": "0xfa"}}),
    ('{account(address:"deaff00ddeaff00ddeaff00ddeaff00ddeaff00d"){address balance transactionCount code '
     'storage(slot:"0x01")}}',
     {"account": {"address": "0xdeaff00ddeaff00ddeaff00ddeaff00ddeaff00d", "balance": "0x0", "transactionCount": 0,
                  "code": "0x", "storage": WORD}}),
    ('{account(address:$account){storage(slot:"0x00000000000000000000000000000004")}}',
     {"account": {"storage": "0xaabbccffffffffffffffffffffffffffffffffffffffffffffffffffffffffee"}}),
    # these cases test the fields `call` and `estimateGas`
    ('{block(number:"0x8"){number call(data:{from:"a94f5374fce5edbc8e2a8697c15331677e6ebf0b",to:$account,'
     'data:"0x12a7b914"}){data status}}}', {"block": {"number": 8, "call": {"data": WORD, "status": 1}}}),
    ("{block{call(data:{}){data status gasUsed}}}", {"block": {"call": {"data": "0x", "status": 1, "gasUsed": 21000}}}),
    ("{block{call(data:{gas:5}){data status gasUsed}}}",
     {"block": {"call": {"data": "0x", "status": 0, "gasUsed": 0}}}),
    ('{block{call(data:{data:"0xfe",gas:100000}){data status gasUsed}}}',
     {"block": {"call": {"data": "0x", "status": 0, "gasUsed": 100000}}}),
    ("{block{estimateGas(data:{})}}", {"block": {"estimateGas": 21000}}),
    ("{pending{estimateGas(data:{}) transactionCount transactions{hash} account(address:$account){balance} "
     'call(data:{to:$account,data:"0x12a7b914"}){data status}}}',
     {"pending": {"estimateGas": 21000, "transactionCount": 0, "transactions": [], "account": {"balance": "0x140"},
                  "call": {"data": WORD[:-1] + "1", "status": 1}}}),
    # these cases test the field `logs`
    ("{logs(filter:{}){index}}", {"logs": [{"index": 0}]}),
    ("{logs(filter:{fromBlock:22,toBlock:23}){topics}}", {"logs": [{"topics": [TOPIC]}]}),
    ("{logs(filter:{fromBlock:32,toBlock:900}){transaction{block{number}}}}",
     {"logs": [{"transaction": {"block": {"number": 32}}}]}),
    ("{block(number:23){logs(filter:{addresses:[],topics:[]}){index account{address}}}}",
     {"block": {"logs": [{"index": 0, "account": {"address": ACCOUNT}}]}}),
    ("{block(number:23){logs(filter:{addresses:null,topics:null}){index}}}", {"block": {"logs": [{"index": 0}]}}),
    ("{block(number:23){logs(filter:{topics:[[]]}){index}}}", {"block": {"logs": [{"index": 0}]}}),
    ("{block(number:23){logs(filter:{topics:[[$nothing,$topic]]}){index}}}", {"block": {"logs": [{"index": 0}]}}),
    ("{block(number:23){logs(filter:{topics:[[$topic],[]]}){index}}}", {"block": {"logs": []}}),
    ("{block(number:23){logs(filter:{topics:[[$nothing]]}){index}}}", {"block": {"logs": []}}),
    # these cases test other fields
    ("{syncing{startingBlock currentBlock highestBlock pulledStates knownStates}}", {"syncing": None}),
    ("{gasPrice chainID}", {"gasPrice": "0x3e8", "chainID": "0x1"}),
]  # fmt: skip


@pytest.mark.parametrize(("document", "data"), ANSWERS, ids=[document for document, _ in ANSWERS])
def test_answer(client: Client, document: str, data: Any) -> None:
    assert client.post(filled(document)) == (200, {"data": data})


FAILURES: list[tuple[str, list[Any], int, tuple[int, str] | str, Any]] = [
    ("{block(number:3,hash:$block30){number}}", ["block"], 2, INVALID_PARAMS, None),
    ("{block(number:88888888){number}}", ["block"], 2, "Block number 88888888 was not found", None),
    ('{block(number:"0x54c5638"){number}}', ["block"], 2, "Block number 88888888 was not found", None),
    ("{block(hash:$nothing){number}}", ["block"], 2, f"Block hash {NOTHING} was not found", None),
    ("{blocks(from:30,to:28){number}}", ["blocks"], 2, INVALID_PARAMS, None),
    ("{blocks(from:33){number}}", ["blocks"], 2, INVALID_PARAMS, None),
    ("{account(address:$account,blockNumber:33){balance}}", ["account"], 2, INVALID_PARAMS, None),
    ("{logs(filter:{fromBlock:5,toBlock:4}){index}}", ["logs"], 2, INVALID_PARAMS, None),
    ("{logs(filter:{toBlock:4}){index}}", ["logs"], 2, INVALID_PARAMS, None),
    ('mutation { sendRawTransaction(data:"0x") }', ["sendRawTransaction"], 12, INVALID_PARAMS, None),
    ('mutation { sendRawTransaction(data:"0xc0") }', ["sendRawTransaction"], 12, INVALID_PARAMS, None),
    ('mutation { sendRawTransaction(data:"0xed0a85174876e800830222e0945aae326516b4f8fe08074b7e972e40a713048d62880de0'
     'b6b3a7640000801c8080") }', ["sendRawTransaction"], 12, INVALID_PARAMS, None),
    ("{transaction(hash:$creation){hash from(block:33){balance}}}", ["transaction", "from"], 94, INVALID_PARAMS,
     {"transaction": None}),
    ("{transaction(hash:$creation){index block{miner(block:33){balance}}}}", ["transaction", "block", "miner"], 101,
     INVALID_PARAMS, {"transaction": {"index": 0, "block": None}}),
    ("{ok:block{number} bad:block(number:99){number}}", ["bad"], 19, "Block number 99 was not found", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("document", "path", "column", "cause", "data"), FAILURES, ids=[document[:60] for document, *_ in FAILURES]
)
def test_failure(
    client: Client, document: str, path: list[Any], column: int, cause: tuple[int, str] | str, data: Any
) -> None:
    status, answer = client.post(filled(document))
    assert (status, list(answer)) == (400, ["errors", "data"]), "errors come first"
    text = cause if isinstance(cause, str) else cause[1]
    extensions = {} if isinstance(cause, str) else {"errorCode": cause[0], "errorMessage": cause[1]}
    assert answer["errors"] == [
        {
            "message": f"Exception while fetching data (/{'/'.join(path)}) : {text}",
            "locations": [{"line": 1, "column": column}],
            "path": path,
            "extensions": {**extensions, "classification": "DataFetchingException"},
        }
    ]
    assert answer["data"] == data


INVALID: list[tuple[str, str]] = [
    ("{account{balance}}", "MissingFieldArgument"),
    ("{account(address:null){balance}}", "WrongType"),
    ("{account(address:$account){storage}}", "MissingFieldArgument"),
    ("{blocks{number}}", "MissingFieldArgument"),
    ("{blocks(to:3){number}}", "MissingFieldArgument"),
    ("{transaction{hash}}", "MissingFieldArgument"),
    ("{logs{index}}", "MissingFieldArgument"),
    ("{block{call{status}}}", "MissingFieldArgument"),
    ("{block{estimateGas}}", "MissingFieldArgument"),
    ("mutation{sendRawTransaction}", "MissingFieldArgument"),
    ('mutation{sendRawTransaction(data:"zz")}', "WrongType"),
    ('mutation{sendRawTransaction(data:"0x123")}', "WrongType"),
    ("{gasPrice1}", "FieldUndefined"),
    ("{block{foo{bar}}}", "FieldUndefined"),
    ("{block(foo:1){number}}", "UnknownArgument"),
    ("{block}", "SubSelectionRequired"),
    ("{syncing}", "SubSelectionRequired"),
    ("{gasPrice{x}}", "SubSelectionNotAllowed"),
    ("{block(number:$n){number}}", "UndefinedVariable"),
    ("query($n:Nope){block(number:$n){number}}", "UnknownType"),
    ("{block{...on Nope{number}}}", "UnknownType"),
    ('{block(hash:"0xz"){number}}', "WrongType"),
    ('{account(address:"0x01"){balance}}', "WrongType"),
    ('{block{transactionAt(index:"0"){hash}}}', "WrongType"),
]


@pytest.mark.parametrize(("document", "kind"), INVALID, ids=[document for document, _ in INVALID])
def test_invalid_document(client: Client, document: str, kind: str) -> None:
    status, answer = client.post(filled(document))
    assert (status, list(answer)) == (400, ["errors"]), "no data member"
    (error,) = answer["errors"]
    assert error["message"].startswith(f"Validation error of type {kind}: ")
    assert error["extensions"] == {"classification": "ValidationError"}
    assert list(error) == ["message", "locations", "extensions"], "no path"


@pytest.mark.parametrize("document", ["", "{", "{}", "x", "query", "{block{number}", "{block(number:){number}}", "#"])
def test_syntax_error(client: Client, document: str) -> None:
    status, answer = client.post(document)
    assert (status, list(answer)) == (400, ["errors"])
    (error,) = answer["errors"]
    assert error["message"].startswith("Invalid Syntax")
    assert error["extensions"] == {"classification": "InvalidSyntax"}
    assert "path" not in error


def test_ommers(client: Client) -> None:
    """An ommer has no body. As in Pantheon, its accounts have the state of the canonical block with the same number."""
    fields = "number transactionCount ommerCount totalDifficulty raw transactions{hash} ommers{hash}"
    fields += " ommerAt(index:0){hash} transactionAt(index:0){hash} logs(filter:{}){index} parent{number}"
    state = "miner{balance} account(address:$account){balance} call(data:{}){status} estimateGas(data:{})"
    shown = client.ask(filled("{block(number:4){ommerCount ommers{" + fields + " " + state + "}}}"))["block"]
    assert shown["ommerCount"] == len(shown["ommers"]) == 2
    for ommer in shown["ommers"]:
        number = ommer.pop("number")
        beside = client.ask(filled("{block(number:" + str(number) + "){account(address:$account){balance}}}"))["block"]
        assert ommer.pop("miner")["balance"].startswith("0x")
        assert ommer == {
            "transactionCount": 0,
            "ommerCount": None,
            "totalDifficulty": "0x0",
            "raw": "0x",
            "transactions": [],
            "ommers": [],
            "ommerAt": None,
            "transactionAt": None,
            "logs": [],
            "parent": {"number": number - 1},
            **beside,
            "call": {"status": 1},
            "estimateGas": 21000,
        }


def test_an_ommer_that_fails_is_null_alone(client: Client) -> None:
    """If an item of `ommers` fails, only this item is null, because the schema allows null items."""
    status, answer = client.post("{block(number:4){ommerCount ommers{number miner(block:33){balance}}}}")
    assert (status, answer["data"]) == (400, {"block": {"ommerCount": 2, "ommers": [None, None]}})
    assert [error["path"] for error in answer["errors"]] == [["block", "ommers", at, "miner"] for at in (0, 1)]


VARIABLES = "query A($n:Long){block(number:$n){number}} query B{gasPrice}"
BODIES: list[tuple[dict[str, Any] | str, int, Any]] = [
    ({"query": VARIABLES, "operationName": "A", "variables": {"n": "0x1e"}}, 200, {"block": {"number": 30}}),
    ({"query": VARIABLES, "operationName": "A", "variables": {"n": 30, "more": []}}, 200, {"block": {"number": 30}}),
    ({"query": VARIABLES, "operationName": "A"}, 200, {"block": {"number": 32}}),
    ({"query": VARIABLES, "operationName": "B", "variables": None}, 200, {"gasPrice": "0x3e8"}),
    ({"query": "{gasPrice}", "operationName": "", "variables": {}}, 200, {"gasPrice": "0x3e8"}),
    ({"query": VARIABLES}, 400, "Must provide operation name"),
    ({"query": VARIABLES, "operationName": "C"}, 400, "Unknown operation named 'C'."),
    ({"query": VARIABLES, "operationName": "A", "variables": '{"n":1}'}, 400, "the variables are not a JSON object"),
    ({"query": VARIABLES, "operationName": "A", "variables": [1]}, 400, "the variables are not a JSON object"),
    ({"query": VARIABLES, "operationName": "A", "variables": {"n": "x"}}, 400, "Variable 'n' has an invalid value"),
    ({"query": 5}, 400, "query: text is expected"),
    ({"query": None}, 400, "Invalid Syntax"),
    ({}, 400, "Invalid Syntax"),
    ("", 400, "the request is not a JSON object"),
    ("[]", 400, "the request is not a JSON object"),
    ("{gasPrice}", 400, "the request is not a JSON object"),
]


@pytest.mark.parametrize(("body", "status", "wanted"), BODIES, ids=[str(body)[:70] for body, *_ in BODIES])
def test_json_body(client: Client, body: dict[str, Any] | str, status: int, wanted: Any) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    found, answer = parsed(client.respond(b"POST", headers={b"content-type": JSON_TYPE}, body=text.encode()))
    assert found == status
    if status == 200:
        assert answer == {"data": wanted}
    else:
        assert list(answer) == ["errors"]
        assert answer["errors"][0]["message"].startswith(wanted)

"""Tests GraphQL documents: accepted syntax, scalar values, and error messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ophion.graphql.limits import GraphqlLimits
from ophion.graphql.service import schema_text
from ophion.native.graphql import GraphqlEngine
from tests.unit.graphql.client import JSON_TYPE, Client, parsed

ADDRESS = "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f"
MINED = "0x9cc6c7e602c56aa30c554bb691377f8703d778cec8845f4b88c0f72516b304f4"


@pytest.mark.parametrize("value", ["30", '"30"', '"0x1e"', '"0X1E"', '"0x001e"'])
def test_long_takes_three_forms_as_literal_and_as_variable(client: Client, value: str) -> None:
    wanted = {"block": {"number": 30}}
    assert client.ask("{block(number:" + value + "){number}}") == wanted
    assert client.ask("query($n:Long){block(number:$n){number}}", {"n": json.loads(value)}) == wanted
    assert client.ask("query($n:Long=" + value + "){block(number:$n){number}}") == wanted


@pytest.mark.parametrize("address", [ADDRESS, ADDRESS[2:], ADDRESS.upper().replace("0X", "0x")])
def test_addresses_need_no_prefix(client: Client, address: str) -> None:
    wanted = {"account": {"address": ADDRESS, "balance": "0x140"}}
    assert client.ask('{account(address:"' + address + '"){address balance}}') == wanted
    assert client.ask("query($a:Address!){account(address:$a){address balance}}", {"a": address}) == wanted


def test_short_slots_are_padded(client: Client) -> None:
    text = "query($s:Bytes32!){account(address:%a){storage(slot:$s)}}".replace("%a", json.dumps(ADDRESS))
    values = {client.ask(text, {"s": slot})["account"]["storage"] for slot in ("0x04", "4", "0x" + "0" * 63 + "4")}
    assert values == {"0xaabbccffffffffffffffffffffffffffffffffffffffffffffffffffffffffee"}


@pytest.mark.parametrize(
    "argument",
    ['number:"zz"', "number:-1", "number:1.5", "number:true", "number:[1,2]", "number:{a:1}", 'number:""',
     'hash:"0xzz"',
     "hash:5", 'number:"18446744073709551616"', 'hash:"0x' + "0" * 65 + '"'],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_a_validation_error(client: Client, argument: str) -> None:
    error = client.error("{ a:block(" + argument + "){number}}")
    assert error["message"].startswith("Validation error of type WrongType: ")
    assert error["message"].endswith(" @ 'a'")
    assert error["extensions"] == {"classification": "ValidationError"}
    assert error["locations"][0]["line"] == 1


@pytest.mark.parametrize("value", ["zz", -1, 1.5, True, [1], {"a": 1}, 2**64, ""])
def test_a_variable_of_the_wrong_kind_is_a_validation_error(client: Client, value: Any) -> None:
    error = client.error("query($n:Long){block(number:$n){number}}", {"n": value})
    assert error["message"].startswith("Variable 'n' has an invalid value")
    assert error["locations"] == [{"line": 1, "column": 7}]


@pytest.mark.parametrize(
    ("document", "column", "argument", "shown", "complaint"),
    [
        ('{block(hash:"0xzz"){number}}', 8, "hash", "StringValue{value='0xzz'}", "is not a valid 'Bytes32'"),
        ("{ a:block( number:-1){number}}", 12, "number", "IntValue{value=-1}", "is not a valid 'Long'"),
        ("{block(number:1.5){number}}", 8, "number", "FloatValue{value=1.5}", "is not a valid 'Long'"),
        ("{block(number:N){number}}", 8, "number", "EnumValue{name='N'}", "is not a valid 'Long'"),
        ("{block(number:true){number}}", 8, "number", "BooleanValue{value=true}", "is not a valid 'Long'"),
        ("{block(number:[1]){number}}", 8, "number", "ArrayValue{values=[IntValue{value=1}]}", "is not a valid 'Long'"),
        ('{block{ommerAt(index:"0"){hash}}}', 16, "index", "StringValue{value='0'}", "is not a valid 'Int'"),
        ("{block{ommerAt(index:3000000000){hash}}}", 16, "index", "IntValue{value=3000000000}", "is not a valid 'Int'"),
        ("{blocks(from:null){number}}", 9, "from", "NullValue{}", "must not be null"),
        ("{block{logs(filter:null){index}}}", 13, "filter", "NullValue{}", "must not be null"),
        ('{block{call(data:"x"){status}}}', 13, "data", "StringValue{value='x'}", "must be an object type"),
        ('{block{call(data:{to:"0x1"}){data}}}', 13, "data.to", "StringValue{value='0x1'}", "is not a valid 'Address'"),
        (
            "{block{call(data:{foo:1}){status}}}", 13, "data",
            "ObjectValue{objectFields=[ObjectField{name='foo', value=IntValue{value=1}}]}",
            "contains a field not in 'CallData': 'foo'",
        ),
        (
            '{logs(filter:{topics:[[],["0x1",7]]}){index}}', 7, "filter.topics[1][1]", "IntValue{value=7}",
            "is not a valid 'Bytes32'",
        ),
        ("{gasPrice @include(if:1)}", 20, "if", "IntValue{value=1}", "is not a valid 'Boolean'"),
    ],
)  # fmt: skip
def test_a_value_is_shown_as_besu_shows_it(
    client: Client, document: str, column: int, argument: str, shown: str, complaint: str
) -> None:
    error = client.error(document)
    start = f"Validation error of type WrongType: argument '{argument}' with value '{shown}' {complaint} @ '"
    assert error["message"].startswith(start)
    assert error["locations"] == [{"line": 1, "column": column}]
    assert error["extensions"] == {"classification": "ValidationError"}


def test_a_directive_needs_its_argument(client: Client) -> None:
    assert client.error("{gasPrice @include}")["message"] == (
        "Validation error of type MissingDirectiveArgument: Missing directive argument if @ 'gasPrice'"
    )


def test_text_with_escapes_is_text_in_variables_too(client: Client) -> None:
    escaped = ADDRESS.replace("0x", "\\u0030x")
    document = "query($n:Long,$a:Address!){block(number:$n){number account(address:$a){address}}}"
    body = '{"query":"%d","variables":{"n":"\\u0031\\u0030","a":"%a"}}'.replace("%d", document).replace("%a", escaped)
    answer = parsed(client.respond(b"POST", headers={b"content-type": JSON_TYPE}, body=body.encode()))
    assert answer == (200, {"data": {"block": {"number": 10, "account": {"address": ADDRESS}}}})


def test_a_required_variable_must_be_there(client: Client) -> None:
    text = "query($a:Address!){account(address:$a){balance}}"
    for values in (None, {}, {"a": None}, {"b": ADDRESS}):
        assert "NonNull type 'Address!'" in client.error(text, values)["message"]


def test_structured_variables(client: Client) -> None:
    text = "query($f:FilterCriteria!){logs(filter:$f){index}}"
    topic = "0x65c9ac8011e286e89d02a269890f41d67ca2cc597b2c76c7c69321ff492be580"
    everything = client.ask(text, {"f": {"fromBlock": 0, "toBlock": "0x20"}})["logs"]
    assert len(everything) > 3
    assert client.ask(text, {"f": {"fromBlock": 23, "toBlock": 23, "topics": [[topic]], "addresses": ADDRESS}}) == {
        "logs": [{"index": 0}]
    }
    parts = """query($t:[[Bytes32!]!],$a:[Address!],$n:Long){
        logs(filter:{fromBlock:$n,toBlock:$n,topics:$t,addresses:$a}){index}
    }"""
    assert client.ask(parts, {"t": [[topic]], "a": [ADDRESS], "n": 23}) == {"logs": [{"index": 0}]}
    assert client.ask(parts, {"t": topic, "n": 23}) == {"logs": [{"index": 0}]}, "one item stands for a list of one"
    for bad in ({"x": 1}, {"fromBlock": "x"}, {"topics": [[None]]}, {"addresses": [5]}, 7):
        assert client.error(text, {"f": bad})["message"].startswith("Variable 'f")
    assert client.error(text, {"f": {"topics": [[topic, 5]]}})["message"] == (
        "Variable 'f.topics[0][1]' has an invalid value: 5 is not a valid 'Bytes32'"
    )


def test_names_fragments_and_conditions(client: Client) -> None:
    text = """
      query Q($yes: Boolean!, $no: Boolean = false) {
        first: block(number: 1) { ...Parts }
        last: block(number: 2) { ...Parts ... on Block { gasUsed } ... { gasLimit } }
        hidden: block @include(if: $no) { number }
        shown: block @skip(if: $no) { number @skip(if: $yes) hash @include(if: $yes) __typename }
      }
      fragment Parts on Block { number parent { number } parent { gasLimit } }
    """
    shown = client.ask(text, {"yes": True})
    assert list(shown) == ["first", "last", "shown"]
    assert shown["first"] == {"number": 1, "parent": {"number": 0, "gasLimit": 3141592}}
    assert list(shown["last"]) == ["number", "parent", "gasUsed", "gasLimit"]
    assert list(shown["shown"]) == ["hash", "__typename"]
    assert list(client.ask(text, {"yes": False, "no": True})) == ["first", "last", "hidden"]


def test_documents_of_one_shape_keep_their_own_values_and_positions(client: Client) -> None:
    for at in (0, 7, 31, 32):
        document = "{block(number:" + str(at) + '){number} account(address:"' + ADDRESS + '"){address}}'
        assert client.ask(document) == {"block": {"number": at}, "account": {"address": ADDRESS}}
    for number in ("99", "123456789"):
        error = client.error("{ok:block(number:1){number} bad:block(number:" + number + "){number}}")
        assert error["message"] == f"Exception while fetching data (/bad) : Block number {number} was not found"
        assert error["locations"] == [{"line": 1, "column": 29}]
    error = client.error('{ok:account(address:"' + ADDRESS + '"){balance} bad:block(number:99){number}}')
    assert error["locations"] == [{"line": 1, "column": 76}]


def test_literals_that_differ_may_make_a_document_invalid(client: Client) -> None:
    merged = {"a": {"number": 1, "gasUsed": 493172}}
    assert client.ask("{a:block(number:1){number} a:block(number:1){gasUsed}}") == merged
    assert client.errors("{a:block(number:1){number} a:block(number:2){gasUsed}}")[0]["message"].startswith(
        "Validation error of type FieldsConflict"
    )


def test_strings_with_escapes_and_blocks_of_text(client: Client) -> None:
    wanted = {"block": {"number": 30}}
    assert client.ask('{block(number:"\\u0030x1e"){number}}') == wanted
    assert client.ask('{block(number:"""0x1e"""){number}}') == wanted
    assert client.ask('{\n# a comment with "quotes" and 5\n\tblock,(number:30)\n{number}}') == wanted


@pytest.mark.parametrize(
    ("document", "kind", "path"),
    [
        ("{account{balance}}", "MissingFieldArgument: Missing field argument address", "account"),
        ("{gasPrice1}", "FieldUndefined: Field 'gasPrice1' in type 'Query' is undefined", "gasPrice1"),
        ("{block{x:nope}}", "FieldUndefined: Field 'nope' in type 'Block' is undefined", "block/x"),
        ("{block(foo:1){number}}", "UnknownArgument: Unknown field argument foo", "block"),
        ("{block}", "SubSelectionRequired: Sub selection required for field block", "block"),
        ("{gasPrice{x}}", "SubSelectionNotAllowed: Sub selection not allowed on leaf type BigInt", "gasPrice"),
        ("{block(number:$n){number}}", "UndefinedVariable: Undefined variable n", "block"),
        ("query($n:Lon){block(number:$n){number}}", "UnknownType: Unknown type Lon", ""),
        ("{block{transactionAt(index:\"0\"){hash}}}", "WrongType: ", "block/transactionAt"),
    ],
)  # fmt: skip
def test_mistakes_have_the_kinds_that_clients_know(client: Client, document: str, kind: str, path: str) -> None:
    status, answer = client.post(document)
    assert (status, list(answer)) == (400, ["errors"]), "a document that is not valid has no data member"
    first = answer["errors"][0]
    assert first["message"].startswith(f"Validation error of type {kind}")
    assert any(error["message"].endswith(f" @ '{path}'") for error in answer["errors"])
    assert first["extensions"] == {"classification": "ValidationError"}


def test_the_operation_must_be_clear(client: Client) -> None:
    two, several = "query A{chainID} query B{chainID}", "if query contains multiple operations."
    unclear = [
        (two, None, f"Must provide operation name {several}"),
        (two, "", f"Must provide operation name {several}"),
        ("query A{chainID}", "B", "Unknown operation named 'B'."),
    ]
    for document, operation, message in unclear:
        status, answer = client.post(document, None, operation)
        assert (status, list(answer)) == (400, ["errors"])
        assert answer["errors"][0]["message"] == message
    assert client.post("query A{chainID}", None, "") == (200, {"data": {"chainID": "0x1"}}), "an empty name is none"
    assert client.post("subscription{block{number}}")[0] == 400


def test_introspection_shows_types_fields_and_descriptions(client: Client) -> None:
    shown = client.ask("""{
      __typename
      __schema {
        queryType{name} mutationType{name} subscriptionType{name} directives{name} types{name kind description}
      }
      __type(name:"Block") {
        name fields(includeDeprecated:true){ name description args{name type{kind name ofType{name}}} }
      }
      block { __typename }
    }""")
    assert shown["__typename"] == "Query"
    assert shown["__schema"]["queryType"] == {"name": "Query"}
    assert shown["__schema"]["subscriptionType"] is None
    ours = [one for one in shown["__schema"]["types"] if not one["name"].startswith("__")]
    assert all(one["description"] for one in ours)
    assert {field["name"] for field in shown["__type"]["fields"]} >= {"number", "raw", "withdrawals"}
    assert all(field["description"] for field in shown["__type"]["fields"])
    assert shown["block"] == {"__typename": "Block"}
    variable = client.ask("query($t:String!){__type(name:$t){name}}", {"t": "Log"})
    assert variable == {"__type": {"name": "Log"}}
    assert client.get(query="{__schema{queryType{name}}}")[0] == 200


LITERALS = st.one_of(
    st.integers(-3, 40).map(str),
    st.integers(-3, 40).map(lambda number: json.dumps(hex(number))),
    st.sampled_from(
        ['"zz"', '""', "null", "true", "007", "1.5", '"\\u0031"', json.dumps(ADDRESS), json.dumps(MINED), "$n"]
    ),
)
TEMPLATES = st.sampled_from(
    [
        "{block(number:<0>){number} other:block(hash:<1>){number}}",
        "{a:block(number:<0>){number} a:block(number:<1>){hash}}",
        "{\n account(address:<0>, blockNumber:<1>) { balance storage(slot:<0>) }\n block(number:<1>){number} }",
        "query($n:Long=<0>){block(number:$n){number transactionAt(index:<1>){hash}}}",
        "{blocks(from:<0>,to:<1>){number} nothing}",
        "{transaction(hash:<0>){index from(block:<1>){balance}}}",
        "{block{number @include(if:<0>) hash @skip(if:<1>)}}",
        "{logs(filter:{fromBlock:<0>,toBlock:<1>}){index}}",
    ]
)


@settings(max_examples=150)
@given(TEMPLATES, LITERALS, LITERALS)
def test_a_kept_plan_answers_like_a_new_one(client: Client, template: str, first: str, second: str) -> None:
    document = template.replace("<0>", first).replace("<1>", second)
    assert client.post(document) == Client(client.rpc).post(document)


def engine() -> GraphqlEngine:
    limits = GraphqlLimits()
    return GraphqlEngine(
        schema_text(), chain_id=1, protocol_version=1, shows_hex=False, max_tokens=limits.max_tokens,
        max_depth=limits.max_depth,
        max_fields=limits.max_fields, max_cost=1, max_bytes=1, max_blocks=1, max_calls=1, max_logs_range=1, max_logs=1,
    )  # fmt: skip


ENGINE = engine()
PIECES = st.sampled_from(
    ["{", "}", "(", ")", "[", "]", ":", "$n", "block", "number", "hash", "query", "fragment", "on", "...", "F", "@skip",
     "if", "true", "null", "5", '"0x1"', '"""', '"', "\\", "#", "\n", " ", "é", "1.5", "-", "transactions",
     "call", "data"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map(" ".join) | st.text(max_size=60), st.none() | st.text(max_size=20))
def test_no_document_breaks_the_engine(document: str, variables: str | None) -> None:
    found = ENGINE.read_parts(document, None, variables)
    if isinstance(found, bytes):
        assert json.loads(found)["errors"]


@given(st.binary(max_size=80))
def test_no_body_breaks_the_engine(body: bytes) -> None:
    found = ENGINE.read(body)
    if isinstance(found, bytes):
        assert json.loads(found)["errors"]

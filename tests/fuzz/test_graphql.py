"""Fuzz targets for GraphQL over HTTP: mutated documents made from the schema, variables of any kind, random bytes.

Every answer is JSON with `data` or `errors` and a status of graphql.md 1.2, never a traceback (500).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.graphql.service import schema_text
from ophion.rpc.transport.http.messages import Response
from tests.fuzz.mutate import ODD_VALUES, mutated, target
from tests.unit.graphql.client import JSON_TYPE, Client, original_chain

ACCOUNT = "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f"
CREATION = "0x812742182a79a8e67733edc58cfa3767aa2d7ad06439d156ddbbb33e3403b4ed"
LITERALS = (
    "0", "1", "32", "33", "-1", "4294967296", "18446744073709551615", "1.5", "1e9", "true", "null", "$v", "ABC", '""',
    '"0x"', '"0x1"', '"0x20"', '"zz"', f'"{ACCOUNT}"', f'"{CREATION}"', "[]", "[[]]", "{}", '"\\u0030"', '"""0x1"""',
    f'{{to:"{ACCOUNT}",data:"0x12a7b914"}}', "{gas:1,value:$v}", "{fromBlock:0,topics:[[],$v]}", "{foo:1}",
)  # fmt: skip
TYPES = ("Long", "Int!", "Address!", "[Address!]", "Bytes32", "[[Bytes32!]!]", "CallData!", "FilterCriteria!", "Nope")


def schema_fields() -> dict[str, list[tuple[str, list[str], str]]]:
    """Return the fields of each type: name, argument names, result type."""
    found: dict[str, list[tuple[str, list[str], str]]] = {}
    text = re.sub(r'"""[\s\S]*?"""|"[^"\n]*"', "", schema_text())
    for name, body in re.findall(r"type (\w+) \{([^}]*)\}", text):
        fields = re.findall(r"(\w+)\s*(?:\(([^)]*)\))?\s*:\s*([\[\]!\w]+)", body)
        found[name] = [
            (field, re.findall(r"(\w+)\s*:", arguments), kind.strip("[]!")) for field, arguments, kind in fields
        ]
    return found


FIELDS = schema_fields()


@st.composite
def selections(draw: st.DrawFn, kind: str, depth: int = 0) -> str:
    chosen = draw(st.lists(st.sampled_from(FIELDS[kind]), min_size=1, max_size=4))
    parts = []
    for name, arguments, leads_to in chosen:
        part = draw(st.sampled_from(("", "", "a:", "b:"))) + name
        given_arguments = [one for one in arguments if draw(st.integers(0, 9))]
        if given_arguments:
            values = [f"{one}:{draw(st.sampled_from(LITERALS))}" for one in given_arguments]
            part += "(" + ",".join(values) + ")"
        part += draw(st.sampled_from(("", "", "", " @skip(if:$v)", " @include(if:true)", " @nope")))
        if leads_to in FIELDS:
            inner = draw(selections(leads_to, depth + 1)) if depth < 4 else "{__typename}"
            part += inner
        parts.append(part)
    parts += draw(st.sampled_from(([], [], ["__typename"], ["...F"], ["...on Block{number}"], ["nothing"])))
    return "{" + " ".join(parts) + "}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(("Query", "Query", "Query", "Mutation")))
    head = "mutation" if kind == "Mutation" else "query"
    declared = f"($v:{draw(st.sampled_from(TYPES))})" if draw(st.booleans()) else ""
    fragment = draw(
        st.sampled_from(("", " fragment F on Block{number parent{...F}}", " fragment F on Query{gasPrice}"))
    )
    return f"{head} {declared}{draw(selections(kind))}{fragment}"


VARIABLES = st.dictionaries(
    st.sampled_from(("v", "w")), st.one_of(st.sampled_from(ODD_VALUES), st.sampled_from([ACCOUNT, "0x1", [[CREATION]]]))
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with original_chain(tmp_path_factory.mktemp("fuzzed")) as opened:
        yield opened


def check(response: Response) -> None:
    body = b"".join(response.body)
    assert response.status in (200, 400, 405), body
    answer: dict[str, Any] = json.loads(body)
    if response.status == 200:
        assert list(answer) == ["data"]
    else:
        assert answer["errors"]
        assert all(error["message"] for error in answer["errors"])


@target(150)
@given(documents(), VARIABLES, st.sampled_from((None, "", "A", "nope")))
def test_a_document_of_the_schema(client: Client, document: str, variables: Any, operation: str | None) -> None:
    body = json.dumps({"query": document, "variables": variables, "operationName": operation}).encode()
    check(client.respond(b"POST", headers={b"content-type": JSON_TYPE}, body=body))
    assert client.ask("{block(number:1){number}}") == {"block": {"number": 1}}


SAMPLES = [
    b'{"query":"query A($v:Long){block(number:$v){hash}}","variables":{"v":"0x1"},"operationName":"A"}',
    b'{"query":"{blocks(from:1,to:3){number transactions{hash from{address} logs{index}}}}"}',
    f'{{"query":"{{account(address:\\"{ACCOUNT}\\"){{storage(slot:\\"0x04\\")}}}}","variables":null}}'.encode(),
    b'{"query":"{__schema{types{name fields{name}}}}"}',
]


@target(150)
@given(mutated(SAMPLES), st.sampled_from((JSON_TYPE, b"application/graphql")))
def test_a_damaged_body(client: Client, body: bytes, kind: bytes) -> None:
    check(client.respond(b"POST", headers={b"content-type": kind}, body=body))


@target(100)
@given(
    mutated([b"query={gasPrice}&variables={}&operationName=A", b"query=query($v:Int){block{number}}&variables=%7B%7D"])
)
def test_a_damaged_address(client: Client, query: bytes) -> None:
    check(client.respond(b"GET", query=query))

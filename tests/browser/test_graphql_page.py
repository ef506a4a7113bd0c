"""Tests the query page of the GraphQL port in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ophion.testing.node_process import MINING, NodeProcess
from tests.browser.chromium import Browser


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    options = (*MINING, "--graphql-http-enabled", "--graphql-http-port=0")
    with NodeProcess(tmp_path_factory.mktemp("page") / "data", *options) as process:
        yield process


@pytest.fixture
def page(node: NodeProcess, browser: Browser) -> Browser:
    browser.open(f"http://127.0.0.1:{node.ports['graphql-http']}/graphql", "!!document.getElementById('run')")
    browser.value("localStorage.clear()")
    browser.until("document.querySelectorAll('#schema dt').length > 5")
    return browser


OFFERED = (
    "(list => list.hidden ? null : [...list.children].map(one => one.firstChild.textContent))"
    "(document.getElementById('hints'))"
)


def run(page: Browser, document: str, variables: str = "") -> dict[str, Any]:
    page.value(f"document.getElementById('query').value = {json.dumps(document)}")
    page.value(f"document.getElementById('variables').value = {json.dumps(variables)}")
    page.value("document.getElementById('status').textContent = ''; document.getElementById('run').click()")
    page.until("/ms/.test(document.getElementById('status').textContent)")
    answer: dict[str, Any] = json.loads(page.value("document.getElementById('answer').textContent"))
    return answer


def test_a_person_runs_a_query(page: Browser, node: NodeProcess) -> None:
    answer = run(page, "query($n:Long){block(number:$n){number hash}}", '{"n":0}')
    assert answer["data"]["block"] == {"number": 0, "hash": node.rpc("eth_getBlockByNumber", "0x0", False)["hash"]}
    assert page.value("document.getElementById('status').textContent").startswith("200 ")
    assert page.complaints == []


def test_mistakes_are_shown(page: Browser) -> None:
    assert run(page, "{nothing}")["errors"][0]["message"].startswith("Validation error of type FieldUndefined")
    assert page.value("document.getElementById('status').textContent").startswith("400 ")


def test_the_schema_can_be_explored(page: Browser) -> None:
    page.value("[...document.querySelectorAll('#schema button')].find(one => one.textContent === 'Query').click()")
    assert "Blocks in ascending order" in page.until("document.getElementById('schema').textContent")
    page.value("[...document.querySelectorAll('#schema button')].find(one => one.textContent === 'Block!').click()")
    assert page.until("document.getElementById('schema').textContent.includes('logsBloom')")
    page.value(
        "document.getElementById('search').value = 'createdcontract';"
        "document.getElementById('search').dispatchEvent(new Event('input'))"
    )
    assert page.until("document.getElementById('schema').textContent.includes('Transaction.createdContract')")


def test_fields_are_offered_while_typing(page: Browser) -> None:
    page.value("document.getElementById('query').focus(); document.getElementById('query').value = ''")
    page.type("{block{transactions{effec")
    assert page.until(OFFERED) == ["effectiveTip", "effectiveGasPrice"]
    page.press("Enter")
    assert page.value("document.getElementById('query').value") == "{block{transactions{effectiveTip"
    page.type("}logs(fil")
    assert page.until(OFFERED) == ["filter"]
    page.press("Tab")
    page.type(":{top")
    assert page.until(OFFERED) == ["topics"]


@pytest.mark.parametrize(
    ("document", "mistake"),
    [
        ("{block{nmber}}", "1:8 Block has no field nmber; is it number?"),
        ("{block{number", "1:13 } is missing at the end"),
        ("{block}", "1:2 block needs its fields in braces: it is a Block!"),
        ("{account{balance}}", "1:2 field account needs address: Address!"),
        ("{block(nr:1){number}}", "1:8 field block takes no nr"),
        ("query($n:Long){block(number:$m){number}}", "1:29 the variable $m is not declared"),
        ("{block{number{x}}}", "1:8 number has no fields: it is a Long!"),
        ("{block{...Some}}", "1:11 unknown fragment Some"),
    ],
)
def test_mistakes_are_shown_while_typing(page: Browser, document: str, mistake: str) -> None:
    page.value("document.getElementById('query').focus(); document.getElementById('query').value = ''")
    page.type(document)
    page.until(f"document.getElementById('mistakes').innerText.includes({json.dumps(mistake)})")
    assert page.value("document.querySelectorAll('.shade .wrong').length")
    # the node reports an error for the same document
    assert "errors" in run(page, document)


def test_a_good_document_has_no_mistakes(page: Browser) -> None:
    page.value("document.getElementById('query').focus(); document.getElementById('query').value = '{'")
    page.type("bad")
    page.until("document.getElementById('mistakes').innerText")
    document = (
        'query A($n:Long=1){a:block(number:$n){...F logs(filter:{topics:[["0x1"],[]]}){index}}}'
        "fragment F on Block{number}"
    )
    page.value(f"document.getElementById('query').value = {json.dumps(document)}")
    page.type(" ")
    page.until("!document.getElementById('mistakes').innerText && !!document.querySelector('.shade .name')")


def test_a_document_is_tidied_without_changing_its_meaning(page: Browser) -> None:
    document = 'query A($n:Long=5){block(number:$n){number,logs(filter:{topics:[["0x1"]]}){index}}}'
    page.value(f"document.getElementById('query').value = {json.dumps(document)}")
    page.value("document.getElementById('format').click()")
    tidied = page.value("document.getElementById('query').value")
    assert tidied.count("\n") > 4
    assert run(page, tidied, '{"n":0}') == {"data": {"block": {"number": 0, "logs": []}}}


def test_nothing_is_asked_of_any_other_host(page: Browser, node: NodeProcess) -> None:
    run(page, "{block{number}}")
    own = f"http://127.0.0.1:{node.ports['graphql-http']}/"
    assert [address for address in page.asked if not address.startswith((own, "data:"))] == []

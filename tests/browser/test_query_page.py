"""Tests the SQL tab of the playground in a real browser: a table, an error, a refused query, examples."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.browser.chromium import Browser

pytest.importorskip("duckdb", reason="the extra ophion[data] is not installed")
pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")

FREE = ("--page-http-port=0", "--rpc-ws-port=0", "--graphql-http-port=0")
SQL = ("--rpc-http-api=ETH,NET,WEB3,ADMIN,DEBUG,TXPOOL,SQL", "--rpc-sql-max-rows=600")
CTRL = 2
CELLS = "[...document.querySelectorAll('#main table')[0].querySelectorAll('{0}')].map((one) => one.innerText)"
ALERT = "document.querySelector('#main p.failed[role=alert]')?.innerText"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("query") / "data", *FREE, *SQL, command=("dev",)) as started:
        for nonce in range(3):
            raw = legacy_transaction(DEV_KEYS[0], nonce, to=bytes([nonce + 1]) * 20, value=nonce + 7)
            started.receipt(started.send(raw))
        yield started


@pytest.fixture
def page(node: NodeProcess, browser: Browser) -> Browser:
    browser.look()
    browser.open(f"http://127.0.0.1:{node.ports['page-http']}/#/query", "!!document.querySelector('textarea.query')")
    return browser


def run(page: Browser, query: str) -> str:
    """Type a query, run it with Ctrl+Enter and return the status line."""
    page.value(
        "document.querySelector('textarea.query').value = ''; document.querySelector('textarea.query').focus();"
        "document.querySelector('#main [role=status]').textContent = ''"
    )
    page.type(query)
    page.press("Enter", modifiers=CTRL)
    status = "document.querySelector('#main [role=status]').textContent"
    found: str = page.until(f"(t => /rows|failed/.test(t) && t)({status})")
    return found


def test_a_typed_query_shows_a_table(page: Browser) -> None:
    status = run(page, "select to_hex(to_address) recipient, value_string amount from transactions order by 2")
    assert status.startswith("3 rows · ")
    assert page.value(CELLS.format("th")) == ["recipient", "amount"]
    wanted = [text for at in (1, 2, 3) for text in ("0x" + f"{at:02x}" * 20, str(at + 6))]
    assert page.value(CELLS.format("td")) == wanted
    assert page.complaints == []


def test_long_answers_are_cut_and_say_so(page: Browser) -> None:
    assert "more rows were left out" in run(page, "select range n from range(1000)")
    assert "The first 500 of 600 rows are shown." in page.text("#main")
    assert len(page.value(CELLS.format("tbody tr"))) == 500


def test_an_error_is_shown(page: Browser) -> None:
    assert run(page, "select nothing from transactions") == "failed"
    assert "nothing" in page.value(ALERT)


@pytest.mark.parametrize(
    "query", ["select * from read_text('/etc/hostname')", "create table t (n integer)", "select 1; select 2"]
)
def test_a_forbidden_query_is_refused(page: Browser, query: str) -> None:
    assert run(page, query) == "failed"
    assert page.value(ALERT)
    # the next query is answered
    assert run(page, "select 1 one").startswith("1 rows")
    assert page.value(CELLS.format("td")) == ["1"]


def test_markup_in_an_answer_stays_text(page: Browser) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    run(page, f"select '{hostile}' as t")
    assert page.value(CELLS.format("td")) == [hostile]
    assert page.value("document.querySelectorAll('#main img').length") == 0


def test_examples_and_tables_are_offered(page: Browser) -> None:
    names = page.value("[...document.querySelectorAll('#main form button.quiet')].map((one) => one.innerText)")
    assert "Top senders" in names
    for at in range(len(names)):
        page.value(f"document.querySelectorAll('#main form button.quiet')[{at}].click()")
        page.until("/rows/.test(document.querySelector('#main [role=status]').textContent)")
        assert not page.value(ALERT)
    described = page.value("[...document.querySelectorAll('#main details summary code')].map((one) => one.textContent)")
    assert {"blocks", "transactions", "logs"} <= set(described)


def test_a_node_without_sql_says_how_to_enable_it(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> None:
    with NodeProcess(tmp_path_factory.mktemp("plain") / "data", *FREE, command=("dev",)) as plain:
        browser.open(f"http://127.0.0.1:{plain.ports['page-http']}/#/query", "!!document.querySelector('#main')")
        assert "--rpc-http-api" in browser.reads("SQL is disabled on this node")

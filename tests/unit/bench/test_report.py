from __future__ import annotations

import json
from html.parser import HTMLParser

from ophion.bench.load_step import LoadShape, LoadStep
from ophion.bench.report import MeasuredRun, as_html, as_json, summary
from ophion.bench.search import SearchResult
from tests.unit.bench.steps import step_of

SUBJECT = MeasuredRun("http://127.0.0.1:8545", "client <script>alert(1)</script>", 1337, "2026-11-15 20:00:00 UTC")


def outcome() -> SearchResult:
    good, bad = step_of(500), step_of(2_000, refused="<b>full</b>")
    return SearchResult([good, bad], good, "The node refused 3 of 8000 transactions: <b>full</b>")


def test_a_person_sees_rate_times_and_limit() -> None:
    text = summary(outcome(), SUBJECT)
    assert "500  transactions per second, sustained (single requests on 8 connections)" in text
    assert "until mined, median" in text
    assert "until mined, 99th percentile" in text
    assert text.endswith("What limits it: The node refused 3 of 8000 transactions: <b>full</b>")
    assert "sustained none" in summary(SearchResult(), SUBJECT)


def test_what_was_not_confirmed_is_said() -> None:
    good = outcome()
    assert "Not confirmed" not in summary(good, SUBJECT) + as_html(good, SUBJECT)
    assert as_json(good, SUBJECT)["confirmed"]
    good.is_confirmed = False
    assert "Not confirmed: the network sustained it for 4 s" in summary(good, SUBJECT)
    assert "Not confirmed: the network sustained it for 4 s" in as_html(good, SUBJECT)
    assert not as_json(good, SUBJECT)["confirmed"]


def test_a_program_sees_every_step() -> None:
    values = json.loads(json.dumps(as_json(outcome(), SUBJECT)))
    assert values["best"]["rate"] == 500
    assert [step["is_sustained"] for step in values["steps"]] == [True, False]
    assert values["steps"][1]["refused"] == {"<b>full</b>": 3}
    assert as_json(SearchResult(), SUBJECT)["best"] is None


class Tags(HTMLParser):
    """Tracks open tags, to check that all are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in ("meta", "circle", "path"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_holds_nothing_that_was_answered_as_markup() -> None:
    for found in (outcome(), SearchResult(), SearchResult([LoadStep(10.0, 1.0, LoadShape(16, 8))])):
        page = as_html(found, SUBJECT)
        tags = Tags()
        tags.feed(page)
        assert tags.open == ["p"] * 0
        assert "script" not in tags.seen
        assert "default-src 'none'" in page
    assert "svg" in tags.seen or "Nothing was mined." in page

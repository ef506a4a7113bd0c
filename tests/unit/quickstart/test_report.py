"""What is shown stands in paragraphs."""

from __future__ import annotations

from ophion.quickstart.report import enclaves, paragraphs


def test_one_empty_line_between_paragraphs_and_none_for_those_that_have_nothing_to_say() -> None:
    members = {"member1": "abc="}
    assert list(paragraphs(["one", "two"], enclaves({}), ["three"])) == ["one", "two", "", "three"]
    assert list(paragraphs(["one"], enclaves(members)))[1:] == ["", *enclaves(members)]

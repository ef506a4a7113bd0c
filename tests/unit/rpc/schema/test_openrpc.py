"""Tests the OpenRPC document and the documentation pages."""

from __future__ import annotations

import json
import re

import pytest

from ophion.rpc.methods import all_methods
from ophion.rpc.schema.openrpc import document, pages, table
from tests.conftest import ROOT


def test_the_document_has_every_method_with_its_parameters_and_result() -> None:
    content = json.loads(document(all_methods().specs, "Ophion/v1"))
    assert content["openrpc"].startswith("1.")
    methods = {method["name"]: method for method in content["methods"]}
    assert len(methods) == len(all_methods().specs)
    balance = methods["eth_getBalance"]
    assert [(one["name"], one["required"]) for one in balance["params"]] == [("address", True), ("block", False)]
    assert balance["result"]["schema"]["anyOf"][1] == {"type": "null"}
    assert balance["examples"][0]["params"][0]["name"] == "address"
    assert "txpool_besuStatistics" in methods["txpool_clientStatistics"]["x-aliases"]
    for method in methods.values():
        assert method["summary"]
        assert method["result"]["name"]
        assert all(one["schema"] is not None for one in method["params"])


def test_the_index_links_to_a_section_of_a_page_for_every_method() -> None:
    written = pages(all_methods())
    for spec in all_methods().specs:
        assert f"## {spec.name}\n" in written[f"{spec.group}.md"]
        assert f"[`{spec.name}`]({spec.group}.md#" in written["README.md"]


def test_the_pages_in_the_repository_are_up_to_date() -> None:
    folder = ROOT / "docs" / "rpc"
    written = pages(all_methods())
    assert {path.name for path in folder.glob("*.md")} == set(written), "run `make docs`"
    for name, text in written.items():
        assert (folder / name).read_text() == text, f"docs/rpc/{name} is stale: run `make docs`"


@pytest.mark.parametrize("name", ["README.md", "eth.md"])
def test_pages_have_no_empty_cells_or_trailing_spaces(name: str) -> None:
    for line in pages(all_methods())[name].splitlines():
        assert line == line.rstrip()


def test_the_table_has_a_row_for_every_group_with_the_number_of_its_methods() -> None:
    rows = table(all_methods(), "docs/rpc").splitlines()[2:]
    counts = {re.sub(r"[_.].*", "", spec.name): 0 for spec in all_methods().specs}
    for row in rows:
        group, count, purpose = re.fullmatch(r"\| \[(\w+)\]\(docs/rpc/\1\.md\) \| (\d+) \| (.+) \|", row).groups()  # type: ignore[union-attr]
        assert purpose
        counts[group] += int(count)
    assert all(counts.values())
    assert sum(counts.values()) == len(all_methods().specs)

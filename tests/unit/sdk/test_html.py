"""HTML for notebooks."""

from __future__ import annotations

from ophion import Chain
from ophion.sdk.html import preformatted, table
from tests.unit.sdk.contracts import TOKEN


def test_objects_have_html() -> None:
    with Chain() as chain:
        token = chain.deploy(TOKEN, "Coin", 5)
        receipt = token.transfer(chain.accounts[1], 1)
        shown = [one._repr_html_() for one in (chain, chain.accounts[0], token, receipt, receipt.trace())]
    assert all(one.startswith(("<table>", "<pre>")) for one in shown)
    assert "Transfer(" in shown[3]


def test_text_is_escaped() -> None:
    assert "<script>" not in table("<script>", {"<script>": "<script>"}) + preformatted("<script>")

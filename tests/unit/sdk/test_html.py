"""Tests HTML for notebooks."""

from __future__ import annotations

from ophion import Chain
from ophion.sdk.html import preformatted, table
from tests.unit.sdk.contracts import TOKEN


def test_objects_have_html() -> None:
    with Chain() as chain:
        token = chain.deploy(TOKEN, "Coin", 5)
        receipt = token.transfer(chain.accounts[1], 1)
        block, transaction = chain.block(), chain.transaction(receipt)
        objects = (chain, chain.accounts[0], token, receipt, receipt.trace(), block, transaction)
        shown = [one._repr_html_() for one in objects]
    assert all(one.startswith(("<table>", "<details")) for one in shown)
    assert "Transfer(" in shown[3]
    assert "Token.transfer(" in shown[4]
    assert receipt.hash in shown[5]
    assert "5 wei" not in shown[6]
    assert f"<td style='text-align:left;font-family:monospace'>{receipt.hash}</td>" in shown[6]


def test_text_is_escaped() -> None:
    assert "<script>" not in table("<script>", {"<script>": "<script>"}) + preformatted("<script>")

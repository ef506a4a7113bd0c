"""Tests datasets of a node that gives arbitrary answers."""

from __future__ import annotations

import pytest

from ophion.data.datasets import dataset_named
from ophion.data.rpc_reader import RpcReader
from ophion.data.selection import Rows
from ophion.errors import CommandError
from tests.unit.hostile_node import BLOCK, ESCAPE_LINE, ODD_ANSWERS, ODD_BODIES, HostileNode, hostile_node, odd_variants


def _read(node: HostileNode, dataset: str | None = None) -> None:
    """Read the head, or a dataset of a block. A wrong answer is a `CommandError`."""
    try:
        reader = RpcReader(node.url)
        reader.head()
        reader.block(5)
        if dataset is not None:
            found = dataset_named(dataset)
            list(reader.batches(found, found.columns, 5, 5, Rows(), False))
    except CommandError as error:
        assert str(error).isprintable()


def test_an_odd_head_is_one_line() -> None:
    with hostile_node() as node:
        for answers in odd_variants({"eth_chainId": "0x1", "eth_getBlockByNumber": BLOCK}):
            node.answers = answers
            _read(node)
        for body in ODD_BODIES:
            node.body = body
            _read(node)
        node.raw = ESCAPE_LINE
        _read(node)


@pytest.mark.parametrize(
    ("dataset", "method"),
    [
        ("blocks", "eth_getBlockByNumber"),
        ("transactions", "eth_getBlockReceipts"),
        ("logs", "eth_getLogs"),
        ("traces", "trace_block"),
        ("balance_diffs", "trace_replayBlockTransactions"),
    ],
)
def test_an_odd_row_is_one_line(dataset: str, method: str) -> None:
    pytest.importorskip("pyarrow", reason="the data extra is not installed")
    answers = {"eth_chainId": "0x1", "eth_getBlockByNumber": BLOCK | {"transactions": [{"hash": "0x11"}]}}
    with hostile_node() as node:
        for odd in ODD_ANSWERS:
            node.answers = {**answers, method: odd}
            _read(node, dataset)
            node.answers = {**answers, method: [odd]}
            _read(node, dataset)

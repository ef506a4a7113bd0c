"""Tests txpool_*."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface

SENDER = "0x627306090abaB3A6e1400e9345bC60c78a8BEf57"


@pytest.fixture
def pool(dev: Interface) -> Interface:
    """Open a pool with nonces 0, 1 and 3 of one sender, and a creation of another sender."""
    to = bytes.fromhex("11" * 20)
    raws = [legacy_transaction(DEV_KEYS[1], nonce, to=to, value=nonce, gas_price=10**9 + nonce) for nonce in (0, 1, 3)]
    dev.run(dev.node.send(*raws, legacy_transaction(DEV_KEYS[2], 0, to=None, gas=100_000)))
    return dev


def test_counts(pool: Interface) -> None:
    assert pool.ask("txpool_status") == {"pending": "0x3", "queued": "0x1"}
    for word in ("client", "besu", "pantheon"):
        assert pool.ask(f"txpool_{word}Statistics") == {"maxSize": 4096, "localCount": 4, "remoteCount": 0}


def test_entries_say_where_and_when_they_came_from(pool: Interface) -> None:
    entries = pool.ask("txpool_clientTransactions")
    assert len(entries) == 4
    for entry in entries:
        assert set(entry) == {"hash", "isReceivedFromLocalSource", "addedToPoolAt"}
        assert entry["isReceivedFromLocalSource"] is True
        assert entry["addedToPoolAt"] == "2023-11-14T22:13:20Z"


def test_content_is_ordered_by_sender_and_nonce(pool: Interface) -> None:
    content = pool.ask("txpool_content")
    assert set(content["pending"][SENDER]) == {"0", "1"}
    assert set(content["queued"][SENDER]) == {"3"}
    assert content["pending"][SENDER]["0"]["blockHash"] is None
    assert pool.ask("txpool_contentFrom", SENDER) == {
        "pending": content["pending"][SENDER], "queued": content["queued"][SENDER],
    }  # fmt: skip
    assert pool.ask("txpool_contentFrom", "0x1") == {"pending": {}, "queued": {}}


def test_content_can_be_had_as_text(pool: Interface) -> None:
    shown = pool.ask("txpool_inspect")
    assert shown["queued"][SENDER]["3"] == (
        "0x1111111111111111111111111111111111111111: 3 wei + 21000 gas × 1000000003 wei"
    )
    (creation,) = [texts["0"] for sender, texts in shown["pending"].items() if sender != SENDER]
    assert creation == "contract creation: 0 wei + 100000 gas × 1000000000 wei"


@pytest.mark.parametrize(
    ("params", "count"),
    [
        ([], 4),
        ([2], 2),
        ([None, {"from": {"eq": SENDER}}], 3),
        ([10, {"from": {"eq": SENDER}, "nonce": {"gt": "0x0"}}], 2),
        ([10, {"nonce": {"lt": "0x1"}}], 2),
        ([10, {"nonce": {"lt": "1"}}], 2),
        ([10, {"gas": {"eq": "0x5208"}, "value": {"gt": "0x1"}}], 1),
        ([10, {"gasPrice": {"gt": "0x3b9aca00"}}], 2),
        ([10, {"to": {"eq": "0x" + "11" * 20}}], 3),
        ([10, {"to": {"action": "contract_creation"}}], 1),
    ],
)
def test_pending_transactions_can_be_filtered(pool: Interface, params: list[Any], count: int) -> None:
    assert len(pool.ask("txpool_besuPendingTransactions", *params)) == count


@pytest.mark.parametrize(
    "filter", [5, {"nonce": 5}, {"nonce": {"ge": "0x1"}}, {"color": {"eq": "0x1"}}, {"from": {"gt": SENDER}}]
)
def test_bad_filters_are_refused(pool: Interface, filter: Any) -> None:
    assert pool.error("txpool_besuPendingTransactions", 10, filter) == (-32602, "Invalid params")

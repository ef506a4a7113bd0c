"""Tests the search for the transactions of an address: own calls, inner calls, its creation, pages in both
directions.
"""

from __future__ import annotations

from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface
from tests.unit.rpc.methods.test_otterscan import PAID, PAYING, SENDER, run


def test_transactions_of_an_address_are_paged_in_both_directions(dev: Interface) -> None:
    contract, creation, called = run(dev, PAYING, value=5)
    _, (last,) = dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[0], 2, to=b"\xbb" * 20)))
    hashes = [creation, called, "0x" + last.hex()]

    def ask(method: str, address: str, block: int, size: int) -> tuple[list[str], bool, bool]:
        page = dev.ask(f"ots_searchTransactions{method}", address, block, size)
        assert [one["transactionHash"] for one in page["receipts"]] == [one["hash"] for one in page["txs"]]
        return [one["hash"] for one in page["txs"]], page["firstPage"], page["lastPage"]

    assert ask("Before", PAID, 0, 10) == ([called], True, True)
    assert ask("Before", contract, 0, 10) == ([called, creation], True, True)
    assert ask("Before", SENDER, 0, 2) == ([hashes[2], hashes[1]], True, False)
    assert ask("Before", SENDER, 2, 2) == ([hashes[0]], False, True)
    assert ask("After", SENDER, 0, 2) == ([hashes[1], hashes[0]], False, True)
    assert ask("After", SENDER, 2, 2) == ([hashes[2]], True, False)


def test_many_blocks_are_searched_in_parts(dev: Interface) -> None:
    sent = []
    for nonce in range(70):  # make more blocks than one part of a search covers
        _, (hash,) = dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[0], nonce, to=b"\xbb" * 20)))
        sent.append("0x" + hash.hex())
    page = dev.ask("ots_searchTransactionsBefore", "0x" + "bb" * 20, 0, 100)
    assert [one["hash"] for one in page["txs"]] == sent[::-1]
    page = dev.ask("ots_searchTransactionsAfter", "0x" + "bb" * 20, 0, 66)
    assert [one["hash"] for one in page["txs"]] == sent[:66][::-1]
    assert dev.ask("ots_searchTransactionsBefore", "0x" + "cc" * 20, 0, 5) == {
        "txs": [], "receipts": [], "firstPage": True, "lastPage": True,
    }  # fmt: skip


def test_a_search_below_a_block_far_above_the_head_starts_at_the_head(dev: Interface) -> None:
    page = dev.ask("ots_searchTransactionsBefore", "0x" + "cc" * 20, 2**63, 5)
    assert page["txs"] == []
    assert page["lastPage"] is True

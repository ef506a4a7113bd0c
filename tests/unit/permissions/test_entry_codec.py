"""Tests the encoding of list entries."""

from __future__ import annotations

from ophion.permissions.list_requests import ACCOUNTS, NODES


def test_both_spellings_of_each_list() -> None:
    assert ACCOUNTS.keys == ("accounts-whitelist", "accounts-allowlist")
    assert NODES.keys == ("nodes-whitelist", "nodes-allowlist")


def test_entries_are_written_as_they_are_read() -> None:
    account = "0x" + "ab" * 20
    node = f"enode://{'cd' * 64}@127.0.0.1:30303"
    assert ACCOUNTS.write(ACCOUNTS.read(account)) == account
    assert NODES.write(NODES.read(node)) == node

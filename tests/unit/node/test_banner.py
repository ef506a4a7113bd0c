"""Tests the startup text."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from ophion.chainspec.dev_network import DEV_ACCOUNTS, ORIGINAL_ACCOUNTS
from ophion.node.banner import StartupSummary, banner

SUMMARY = StartupSummary(
    endpoints={"HTTP": "http://127.0.0.1:8545"},
    network="dev",
    chain_id=2018,
    accounts=DEV_ACCOUNTS,
    is_mining=True,
    head=3,
    data_path=Path("data"),
    is_temporary=False,
)


def test_the_banner_shows_endpoints_chain_accounts_and_data() -> None:
    text = banner(SUMMARY)
    assert "http://127.0.0.1:8545" in text
    assert "chain id 2018 (0x7e2)" in text
    assert "0x8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63" in text
    assert "public test keys" in text
    lines = [line.split() for line in text.splitlines() if " ether" in line]
    assert [(line[0], line[1]) for line in lines] == [
        (f"0x{account.address.hex()}", f"0x{account.private_key.hex()}") for account in DEV_ACCOUNTS
    ]
    assert lines[0][2:] == ["10000", "ether"]
    assert "'test test test test test test test test test test test junk'" in text


def test_an_old_fork_shows_its_three_accounts() -> None:
    text = banner(replace(SUMMARY, accounts=ORIGINAL_ACCOUNTS))
    assert text.count(" ether") == 3
    assert "mnemonic" not in text


def test_keys_are_shown_on_the_dev_network_only() -> None:
    text = banner(replace(SUMMARY, accounts=(), network="genesis.json", is_temporary=True))
    assert "keys" not in text
    assert "removed when the node stops" in text

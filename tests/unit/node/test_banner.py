"""Tests the startup text."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from ophion.chainspec.dev_network import DEV_ACCOUNTS, ORIGINAL_ACCOUNTS
from ophion.chainspec.genesis import parse_genesis
from ophion.node.banner import DevSummary, ForkSummary, StartupSummary, anvil_banner, banner
from ophion.primitives.types import ZERO_HASH

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


def test_the_banner_of_the_preset_has_the_lines_that_tools_of_anvil_read() -> None:
    genesis = parse_genesis(
        '{"config": {"chainId": 31337, "ethash": {}}, "gasLimit": "0x10", "difficulty": "0x1", "timestamp": "0x5"}'
    )
    text = anvil_banner(
        DevSummary(
            addresses=["127.0.0.1:8545", "[::1]:8545"],
            chain_id=31337,
            accounts=DEV_ACCOUNTS[:1],
            mnemonic="one two",
            derivation_path="m/44'/60'/0'/0/",
            genesis=genesis.header(ZERO_HASH),
        )
    )
    lines = text.splitlines()
    for line in (
        "(0) 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266 (10000.000000000000000000 ETH)",
        "(0) 0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        "Mnemonic:          one two",
        "Derivation path:   m/44'/60'/0'/0/",
        "Listening on 127.0.0.1:8545",
        "Listening on [::1]:8545",
    ):
        assert line in lines
    values = {
        title: lines[lines.index(title) + 3] for title in ("Chain ID", "Base Fee", "Gas Limit", "Genesis Timestamp")
    }
    assert values == {"Chain ID": "31337", "Base Fee": "0", "Gas Limit": "16", "Genesis Timestamp": "5"}
    assert "Fork" not in lines


def test_the_banner_of_a_fork_shows_its_source_as_anvil_does() -> None:
    genesis = parse_genesis('{"config": {"chainId": 5, "ethash": {}}, "gasLimit": "0x10", "difficulty": "0x1"}')
    summary = DevSummary(
        addresses=["127.0.0.1:8545"],
        chain_id=5,
        accounts=(),
        mnemonic="one two",
        derivation_path="m/44'/60'/0'/0/",
        genesis=genesis.header(ZERO_HASH),
        fork=ForkSummary("http://127.0.0.1:9545", 2, b"\x11" * 32, 5),
    )
    lines = anvil_banner(summary).splitlines()
    start = lines.index("Fork")
    assert lines[start + 3 : start + 7] == [
        "Endpoint:       http://127.0.0.1:9545",
        "Block number:   2",
        "Block hash:     0x" + "11" * 32,
        "Chain ID:       5",
    ]

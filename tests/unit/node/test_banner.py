"""What a person sees at start."""

from __future__ import annotations

from pathlib import Path

from ophion.node.banner import Summary, banner

SUMMARY = Summary(
    endpoints={"HTTP": "http://127.0.0.1:8545"},
    network="dev",
    chain_id=2018,
    is_dev=True,
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
    assert text.count("private key") == 3


def test_keys_are_shown_on_the_dev_network_only() -> None:
    from dataclasses import replace

    text = banner(replace(SUMMARY, is_dev=False, network="genesis.json", is_temporary=True))
    assert "private key" not in text
    assert "removed when the node stops" in text

"""Tests the built-in development network."""

from __future__ import annotations

from pathlib import Path

import pytest
from eth_account import Account
from msgspec.structs import replace

from ophion.chain.chain import Chain
from ophion.chainspec.dev_network import (
    DEV_ACCOUNTS,
    MNEMONIC,
    MNEMONIC_ACCOUNTS,
    dev_accounts,
    dev_genesis,
)
from ophion.chainspec.forks import Milestone
from ophion.chainspec.network_names import DEV_FORKS
from ophion.consensus.engine_factory import engine_for
from ophion.consensus.header_rules import next_base_fee
from ophion.errors import GenesisError
from ophion.native.crypto import PrivateKey
from ophion.native.store import open_store

ORIGINAL_HASH = "a08d1edb37ba1c62db764ef7c2566cbe368b850f5b3762c6c24114a3fd97b87f"
ORIGINAL_STATE_ROOT = "166ed98eea93ab2b6f6b1a425526994adc2d675bf9a0d77d600ed1e02d8f77df"


def test_petersburg_gives_the_genesis_of_pantheon_including_its_hash(tmp_path: Path) -> None:
    genesis = dev_genesis("petersburg")
    store = open_store(tmp_path, durable=False)
    header = Chain.open(store, genesis, engine_for(genesis.spec)).genesis
    assert header.hash.hex() == ORIGINAL_HASH
    assert header.header.state_root.hex() == ORIGINAL_STATE_ROOT
    assert genesis.spec.chain_id == 2018
    assert genesis.spec.fork_at(0, 0).milestone is Milestone.PETERSBURG
    store.close()


def test_by_default_every_fork_to_osaka_is_active_and_the_base_fee_stands_still_at_seven() -> None:
    genesis = dev_genesis()
    assert genesis.spec.fork_at(0, 0).milestone is Milestone.OSAKA
    first = genesis.header(bytes(32))
    assert first.base_fee_per_gas == 7
    assert not genesis.spec.zero_base_fee
    assert next_base_fee(first, genesis.spec) == 7
    assert next_base_fee(replace(first, gas_used=10**9), genesis.spec) == 7
    assert genesis.spec.is_dev
    assert genesis.warnings == ()


@pytest.mark.parametrize("fork", DEV_FORKS)
def test_every_fork_can_be_chosen(fork: str) -> None:
    assert dev_genesis(fork.upper()).spec.fork_at(0, 0).name == fork


def test_another_fork_is_refused_with_the_list() -> None:
    with pytest.raises(GenesisError, match="Unknown fork atlantis .* petersburg"):
        dev_genesis("atlantis")


def test_the_published_keys_belong_to_the_accounts() -> None:
    assert len(DEV_ACCOUNTS) == 13
    for account in DEV_ACCOUNTS:
        assert PrivateKey(account.private_key).address == account.address
    for fork in DEV_FORKS:
        funded = {account.address: account.balance for account in dev_genesis(fork).accounts if account.balance}
        assert funded == {account.address: account.balance for account in dev_accounts(fork)}
    assert dev_accounts("istanbul") == DEV_ACCOUNTS


def test_ten_accounts_are_those_of_the_mnemonic() -> None:
    Account.enable_unaudited_hdwallet_features()
    for position, account in enumerate(MNEMONIC_ACCOUNTS):
        derived = Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{position}")
        assert bytes(derived.key) == account.private_key

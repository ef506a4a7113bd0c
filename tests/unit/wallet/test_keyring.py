"""Tests accounts that can sign."""

from __future__ import annotations

from ophion.chainspec.dev_network import DEV_ACCOUNTS
from ophion.wallet.keyring import Keyring


def test_accounts_keep_their_order_and_unknown_accounts_have_no_key() -> None:
    keyring = Keyring(account.private_key for account in DEV_ACCOUNTS)
    assert keyring.addresses == [account.address for account in DEV_ACCOUNTS]
    key = keyring.get(DEV_ACCOUNTS[3].address)
    assert key is not None
    assert key.secret() == DEV_ACCOUNTS[3].private_key
    assert keyring.get(bytes(20)) is None


def test_an_account_has_one_turn_at_a_time() -> None:
    keyring = Keyring([DEV_ACCOUNTS[0].private_key])
    assert keyring.locks[b"a"] is keyring.locks[b"a"]
    assert keyring.locks[b"a"] is not keyring.locks[b"b"]

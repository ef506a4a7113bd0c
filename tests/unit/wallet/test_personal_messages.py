"""Tests messages with the EIP-191 prefix."""

from __future__ import annotations

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct

from ophion.native.crypto import PrivateKey
from ophion.wallet.personal_messages import message_hash, sign_hash


@pytest.mark.parametrize("message", [b"", b"hello", bytes(range(256)), b"x" * 1000])
def test_a_message_is_signed_as_wallets_sign_it(message: bytes) -> None:
    expected = Account.sign_message(encode_defunct(message), b"\x46" * 32)
    assert message_hash(message) == bytes(expected.message_hash)
    assert sign_hash(PrivateKey(b"\x46" * 32), message_hash(message)) == bytes(expected.signature)

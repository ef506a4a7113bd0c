"""A sender is recovered once, no matter where the transaction appears first."""

from __future__ import annotations

import secrets

import pytest

from ophion.native.crypto import PrivateKey
from ophion.native.exceptions import InvalidBody
from ophion.native.transactions import (
    Body,
    Transaction,
    decode_block,
    decode_transactions,
    recover_bodies,
    senders_recovered,
)
from ophion.primitives import rlp
from ophion.testing.signing import fee_transaction, legacy_transaction


def fresh_transactions(count: int) -> tuple[PrivateKey, list[bytes]]:
    """Return transactions that no other test has made."""
    key = PrivateKey(secrets.token_bytes(32))
    return key, [(legacy_transaction if nonce % 2 else fee_transaction)(key, nonce) for nonce in range(count)]


def test_a_body_of_known_transactions_recovers_no_sender() -> None:
    key, raws = fresh_transactions(40)
    before = senders_recovered()
    decoded = decode_transactions(raws)
    assert senders_recovered() == before + 40
    body = Body.of(raws, [], None)
    body.recover()
    header, again = decode_block(body.encode_block(rlp.encode([b"header"])))
    assert [transaction.sender for transaction in again.transactions] == [key.address] * 40
    assert decode_transactions(raws[:3])
    assert senders_recovered() == before + 40
    assert all(isinstance(one, Transaction) and one.sender == key.address for one in decoded)


def test_transactions_of_a_body_are_known_afterwards() -> None:
    key, raws = fresh_transactions(3)
    before = senders_recovered()
    Body.of(raws, [], None).recover()
    assert senders_recovered() == before + 3
    (first, *_) = decode_transactions(raws)
    assert isinstance(first, Transaction)
    assert first.sender == key.address
    assert senders_recovered() == before + 3


def test_another_signature_is_another_transaction() -> None:
    _, (raw, *_) = fresh_transactions(1)
    decode_transactions([raw])
    fields = rlp.decode_list(raw[1:])
    spoiled = raw[:1] + rlp.encode([*fields[:-1], b"\x01" * 32])  # type: ignore[list-item]
    (decoded,) = decode_transactions([spoiled])
    (sound,) = decode_transactions([raw])
    assert isinstance(sound, Transaction)
    assert isinstance(decoded, str) or decoded.sender != sound.sender


def test_a_transaction_without_a_sender_stays_one() -> None:
    unsigned = rlp.encode([0, 1, 21_000, bytes(20), 0, b"", 27, 0, 0])
    for _ in range(2):
        with pytest.raises(InvalidBody, match="^transaction 0: "):
            Body.of([unsigned], [], None).recover()


def test_senders_of_many_bodies_are_recovered_together() -> None:
    unsigned = rlp.encode([0, 1, 21_000, bytes(20), 0, b"", 27, 0, 0])
    signed = [fresh_transactions(count) for count in (1, 3, 0, 20)]
    bodies = [Body.of(raws, [], None) for _, raws in signed]
    wrong = Body.of([signed[0][1][0], unsigned], [], None)
    before = senders_recovered()
    recover_bodies([*bodies[:2], wrong, *bodies[2:]])
    assert senders_recovered() == before + 25  # the first transaction is in two of the bodies
    for (key, raws), body in zip(signed, bodies, strict=True):
        assert [transaction.sender for transaction in body.transactions] == [key.address] * len(raws)
    assert senders_recovered() == before + 25
    with pytest.raises(InvalidBody, match="^transaction 1: "):
        wrong.recover()

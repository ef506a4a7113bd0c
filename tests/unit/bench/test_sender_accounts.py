from __future__ import annotations

from ophion.bench.sender_accounts import Senders
from ophion.native.crypto import PrivateKey
from ophion.native.transactions import Transaction, decode_transactions

KEYS = [PrivateKey(bytes([number]) * 32) for number in (1, 2, 3)]


def decoded(senders: Senders, count: int) -> list[Transaction]:
    signed = senders.sign(count)
    found = list(decode_transactions([bytes.fromhex(one.text[3:-1].decode()) for one in signed]))
    assert [f"0x{one.hash.hex()}" for one in found if isinstance(one, Transaction)] == [one.hash for one in signed]
    return [one for one in found if isinstance(one, Transaction)]


def test_accounts_take_turns_and_nonces_follow_each_other() -> None:
    found = decoded(Senders(KEYS, 1337, 0), 7)
    assert [one.sender for one in found] == [KEYS[place].address for place in (0, 1, 2, 0, 1, 2, 0)]
    assert [one.nonce for one in found] == [0, 0, 0, 1, 1, 1, 2]
    assert {one.chain_id for one in found} == {1337}


def test_other_accounts_go_on_while_there_are_any() -> None:
    senders = Senders(KEYS[:1], 1337, 0, [KEYS[1:2], KEYS[2:]])
    for key in (*KEYS, KEYS[2]):
        found = decoded(senders, 2)
        assert [one.sender for one in found] == [key.address] * 2
        senders.move_on()
    assert [one.nonce for one in found] == [2, 3], "there are no others: these go on"


def test_the_same_nonce_gives_the_same_transaction() -> None:
    """Signing is deterministic, so the tool can send a refused transaction again and recognises an accepted
    transaction.
    """
    assert Senders(KEYS, 1, 5).sign(6) == Senders(KEYS, 1, 5).sign(6)

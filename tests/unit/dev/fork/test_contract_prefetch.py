"""The fork guesses which contracts a script will read next."""

from __future__ import annotations

from ophion.dev.fork.contract_prefetch import Siblings, creation

CREATOR = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")


def test_addresses_of_creations() -> None:
    assert creation(CREATOR, 0).hex() == "5fbdb2315678afecb367f032d93f642f64180aa3"


def test_neighbours_in_a_row_start_a_guess_that_doubles() -> None:
    siblings = Siblings()
    siblings.add(CREATOR, 100)
    assert siblings.following(creation(CREATOR, 3)) == []
    assert siblings.following(creation(CREATOR, 4)) == [creation(CREATOR, nonce) for nonce in range(5, 13)]
    assert siblings.following(creation(CREATOR, 13)) == [creation(CREATOR, nonce) for nonce in range(14, 30)]


def test_other_contracts_are_no_reason_to_guess() -> None:
    siblings = Siblings()
    siblings.add(CREATOR, 100)
    assert siblings.following(bytes(20)) == []
    assert siblings.following(creation(CREATOR, 3)) == []
    assert siblings.following(creation(CREATOR, 50)) == []

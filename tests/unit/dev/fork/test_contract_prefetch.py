"""The fork guesses which contracts a script will read next."""

from __future__ import annotations

import random

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


def test_contracts_of_one_creator_in_no_order_bring_their_neighbours() -> None:
    siblings = Siblings()
    siblings.add(CREATOR, 1000)
    for nonce in (500, 100, 900):
        assert siblings.following(creation(CREATOR, nonce)) == []
    assert siblings.following(creation(CREATOR, 90)) == [
        creation(CREATOR, nonce) for nonce in (*range(91, 100), *range(101, 104))
    ]
    # a neighbour is returned once; at the end of the range, earlier contracts follow
    assert siblings.following(creation(CREATOR, 88))[0] == creation(CREATOR, 89)
    assert siblings.following(creation(CREATOR, 999))[:2] == [creation(CREATOR, nonce) for nonce in (1000, 998)]


def test_a_random_order_of_all_contracts_asks_for_few() -> None:
    siblings = Siblings()
    siblings.add(CREATOR, 999)
    order = [creation(CREATOR, nonce) for nonce in range(1000)]
    random.Random(1).shuffle(order)
    fetched: set[bytes] = set()
    requests = 0
    for address in order:
        if address not in fetched:
            requests += 1
            fetched |= {address, *siblings.following(address)}
    assert requests < 100

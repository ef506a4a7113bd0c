"""Tests the next validators: votes, epochs, transitions and contracts (scenarios I-19 to I-21, I-24, Q-06,
Q-07, Q-09).
"""

from __future__ import annotations

import pytest

from ophion.consensus.bft.validator_provider import decode_addresses
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.consensus.engine import Vote
from ophion.errors import DecodeError, InvalidHeader
from ophion.native.crypto import PrivateKey
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address
from tests.unit.consensus.bft.ledger import KEYS, Ledger, genesis_of

both = pytest.mark.parametrize("protocol", ["ibft2", "qbft"])
ADDRESSES = tuple(key.address for key in KEYS)
NEW = PrivateKey((5).to_bytes(32, "big"))
CONTRACT = bytes(19) + b"\x77"


def ledger(protocol: str, validators: tuple[Address, ...] = ADDRESSES, **options: object) -> Ledger:
    return Ledger(genesis_of(protocol, validators, {"blockperiodseconds": 1, **options}))


@both
def test_i_19_a_validator_voted_in_is_listed_from_the_next_block_on(protocol: str) -> None:
    chain = ledger(protocol)
    for key in KEYS[:3]:
        assert NEW.address not in chain.validators()
        chain.add(key, Vote(NEW.address, True))
    deciding = chain.head
    assert NEW.address in chain.validators()
    assert NEW.address not in chain.engine.validators_of(deciding, chain)
    five = sorted([*KEYS, NEW], key=lambda key: key.address)
    with pytest.raises(InvalidHeader, match="at least 4 of 5"):
        chain.verify(chain.sealed(chain.draft(KEYS[3]), five[:3]))
    following = chain.add(KEYS[3], keys=five[:4])
    assert chain.engine.validators_of(following, chain) == tuple(sorted((*ADDRESSES, NEW.address)))


@both
def test_i_20_after_the_removal_of_the_proposer_its_follower_proposes(protocol: str) -> None:
    chain = ledger(protocol)
    chain.add(KEYS[0], Vote(KEYS[2].address, False))
    chain.add(KEYS[1], Vote(KEYS[2].address, False))
    chain.add(KEYS[2], Vote(KEYS[2].address, False))
    assert chain.validators() == (KEYS[0].address, KEYS[1].address, KEYS[3].address)
    event = chain.engine.new_head(chain.head, chain)
    assert ValidatorSet.of(4, event.validators, event.head.builder).proposer(0) == KEYS[3].address
    with pytest.raises(InvalidHeader, match="coinbase"):
        chain.verify(chain.sealed(chain.draft(KEYS[2]), [KEYS[0], KEYS[1], KEYS[3]]))


@both
def test_i_21_an_epoch_block_forgets_the_votes_and_its_own_vote_does_not_count(protocol: str) -> None:
    chain = ledger(protocol, epochlength=3)
    chain.add(KEYS[0], Vote(NEW.address, True))
    chain.add(KEYS[1], Vote(NEW.address, True))
    chain.add(KEYS[2], Vote(NEW.address, True))
    assert chain.validators() == ADDRESSES
    for key in KEYS[:2]:
        chain.add(key, Vote(NEW.address, True))
    assert chain.validators() == ADDRESSES
    chain.add(KEYS[2])
    chain.add(KEYS[0], Vote(NEW.address, True))
    assert chain.validators() == ADDRESSES


@both
def test_the_tally_is_the_same_when_it_is_rebuilt_from_the_headers(protocol: str) -> None:
    chain = ledger(protocol, epochlength=50)
    targets = [NEW.address, *ADDRESSES]
    for number in range(60):
        members = chain.validators()
        builder = next(key for key in (*KEYS, NEW) if key.address in members)
        builders = [key for key in (*KEYS, NEW) if key.address in members]
        builder = builders[number % len(builders)]
        vote = Vote(targets[number % 5], number % 3 != 0) if number % 2 else None
        chain.add(builder, vote, keys=[*KEYS, NEW])
    expected = chain.validators()
    fresh = Ledger(genesis_of(protocol, ADDRESSES, {"blockperiodseconds": 1, "epochlength": 50}))
    fresh.headers = chain.headers
    assert fresh.validators() == expected


@both
def test_i_24_a_transition_replaces_the_validators_and_the_vote_before_it_counts_on_top(protocol: str) -> None:
    listed = ["0x" + key.address.hex() for key in KEYS[:2]]
    transitions = {protocol: [{"block": 4, "validators": listed, "blockperiodseconds": 7, "blockreward": "5"}]}
    chain = Ledger(genesis_of(protocol, ADDRESSES, {"blockperiodseconds": 1}, transitions=transitions))
    for key in KEYS[:2]:
        chain.add(key, Vote(NEW.address, True))
    assert chain.validators() == ADDRESSES
    third = chain.add(KEYS[2])
    assert chain.validators() == tuple(sorted(key.address for key in KEYS[:2]))
    assert chain.engine.timing(third).period_s == 7.0
    fourth = chain.add(KEYS[0])
    assert fourth.timestamp == third.timestamp + 7
    assert chain.engine.rewards(third, ()) == []
    assert chain.engine.rewards(fourth, ()) == [(KEYS[0].address, 5)]

    alone = {protocol: [{"block": 2, "validators": listed[:1]}]}
    chain = Ledger(genesis_of(protocol, ADDRESSES, {"blockperiodseconds": 1}, transitions=alone))
    chain.add(KEYS[0], Vote(NEW.address, True))
    assert chain.validators() == tuple(sorted((KEYS[0].address, NEW.address)))


class Contract:
    """A validator contract with preset answers by block number."""

    def __init__(self, answers: dict[int, tuple[Address, ...]]) -> None:
        self.answers = answers
        self.asked: list[tuple[int, Address]] = []

    def __call__(self, header: HashedHeader, contract: Address) -> tuple[Address, ...]:
        self.asked.append((header.number, contract))
        return self.answers[max(number for number in self.answers if number <= header.number)]


def test_q_06_validators_from_a_contract_change_with_the_state_and_are_not_listed() -> None:
    chain = ledger("qbft", (), validatorcontractaddress="0x" + CONTRACT.hex())
    contract = Contract({0: ADDRESSES[:3], 2: (NEW.address, *ADDRESSES)})
    chain.engine.validators.contract_reader = contract
    chain.add(KEYS[0])
    assert len(chain.validators()) == 3
    second = chain.add(KEYS[1], Vote(NEW.address, True))
    assert not chain.engine.has_votes(second)
    assert chain.engine.validators.extra(second.header).validators == ()
    assert chain.engine.validators.extra(second.header).vote is None
    assert len(chain.validators()) == 5
    assert chain.engine.validators_of(second, chain) == tuple(sorted((NEW.address, *ADDRESSES)))
    with pytest.raises(InvalidHeader, match="at least 4 of 5"):
        chain.verify(chain.sealed(chain.draft(KEYS[0]), KEYS[:3]))
    assert contract.asked[0] == (0, CONTRACT)


def test_a_validator_contract_without_validators_or_result_stops_the_chain() -> None:
    chain = ledger("qbft", (), validatorcontractaddress="0x" + CONTRACT.hex())
    with pytest.raises(InvalidHeader, match="cannot be called"):
        chain.validators()
    chain.engine.validators.contract_reader = Contract({0: ()})
    with pytest.raises(InvalidHeader, match="none named"):
        chain.validators()


def test_q_07_from_votes_to_a_contract_and_back() -> None:
    listed = ["0x" + key.address.hex() for key in KEYS]
    transitions = {
        "qbft": [
            {"block": 3, "validatorselectionmode": "Contract", "validatorcontractaddress": "0x" + CONTRACT.hex()},
            {"block": 5, "validatorselectionmode": "blockheader", "validators": listed[:1]},
        ]
    }
    chain = Ledger(genesis_of("qbft", ADDRESSES, {"blockperiodseconds": 1}, transitions=transitions))
    chain.engine.validators.contract_reader = Contract({0: ADDRESSES[:2]})
    sizes = []
    for number in range(1, 7):
        builder = next(key for key in KEYS if key.address in chain.validators())
        header = chain.add(builder)
        sizes.append(len(chain.engine.validators.extra(header.header).validators))
        assert header.number == number
    assert sizes == [4, 4, 0, 0, 1, 1]


def test_q_09_from_ibft2_to_qbft_the_format_changes_and_votes_start_anew() -> None:
    genesis = genesis_of(
        "ibft2",
        ADDRESSES,
        {"blockperiodseconds": 1},
        qbft={"blockperiodseconds": 2, "startblock": 4, "epochlength": 10},
    )
    chain = Ledger(genesis)
    for key in KEYS[:2]:
        chain.add(key, Vote(NEW.address, True))
    third = chain.add(KEYS[2])
    fourth = chain.add(KEYS[3], Vote(NEW.address, True))
    assert [chain.engine.protocol(number).name for number in (3, 4)] == ["ibft2", "qbft"]

    assert fourth.timestamp == third.timestamp + 2
    assert chain.validators() == ADDRESSES
    for key in KEYS[:2]:
        chain.add(key, Vote(NEW.address, True))
    assert NEW.address in chain.validators()


def test_the_answer_of_a_contract_is_read_strictly() -> None:
    word = (32).to_bytes(32, "big")
    good = word + (2).to_bytes(32, "big") + b"".join(bytes(12) + address for address in ADDRESSES[:2])
    assert decode_addresses(good) == ADDRESSES[:2]
    assert decode_addresses(word + bytes(32)) == ()
    for bad in (b"", good[:-1], bytes(32) + good[32:], good[:64] + b"\1" * 64):
        with pytest.raises(DecodeError):
            decode_addresses(bad)

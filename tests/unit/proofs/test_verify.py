"""Tests proofs of generated chains: votes, epochs, transitions, confirmations; forged and changed bundles."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.consensus.engine import Vote
from ophion.errors import ProofError
from ophion.primitives.header import Header
from ophion.primitives.types import EMPTY_CODE_HASH
from ophion.proofs.builder import account_bundle
from ophion.proofs.bundle import ProofBundle
from ophion.proofs.trust_anchor import TrustAnchor, read_trust
from ophion.proofs.verify import verify_bundle
from ophion.testing.bft_chain import KEYS
from tests.unit.proofs.chains import EPOCH, genesis_text, imported
from tests.unit.proofs.standalone import Refused, verify

ACCOUNTS = [key.address for key in KEYS]
NEW = ACCOUNTS[4]
ADDED = {number: Vote(NEW, True) for number in (2, 3, 4)}
DROPPED = {number: Vote(ACCOUNTS[1], False) for number in (14, 15, 16, 17)}
PROTOCOLS = pytest.mark.parametrize("protocol", ["ibft2", "qbft", "clique"])
CHANGES = 1000
MISSING = b"\x99" * 20


def statement(
    bundle: ProofBundle, text: str, trust: TrustAnchor, checkpoint: dict[str, object] | None = None
) -> object:
    """Verify with Ophion and with the standalone verifier. Both must make the same statement."""
    found = verify_bundle(ProofBundle.decode(bundle.encode()), trust).as_object()
    assert verify(bundle.encode(), json.loads(text), checkpoint) == found
    return found


def refused(bundle: ProofBundle, text: str, trust: TrustAnchor, problem: str) -> None:
    with pytest.raises(ProofError, match=problem):
        verify_bundle(bundle, trust)
    with pytest.raises(Refused):
        verify(bundle.encode(), json.loads(text))


@PROTOCOLS
def test_blocks_before_and_after_votes_are_proven(protocol: str, tmp_path: Path) -> None:
    text = genesis_text(protocol, 4)
    trust = read_trust(text.encode())
    with imported(tmp_path, text, 36, ADDED | DROPPED) as chain:
        sizes = {}
        for number in range(1, 32):
            bundle = account_bundle(chain, number, {ACCOUNTS[0]: [bytes(32)], MISSING: []}, False)
            found = verify_bundle(bundle, trust)
            sizes[number] = (found.validators, len(bundle.votes))
            assert found.accounts[0].balance in (0, 10**24)
            assert (found.accounts[1].exists, found.accounts[1].code_hash) == (False, EMPTY_CODE_HASH)
        for number in (1, 18):
            statement(account_bundle(chain, number, {ACCOUNTS[0]: []}, False), text, trust)
    assert sizes[4] == (4, 0)
    assert sizes[5] == (5, 3)
    assert sizes[14] == (5, 3)
    assert sizes[18][0] == sizes[31][0] == 4
    assert sizes[18][1] > 3


@PROTOCOLS
def test_a_bundle_without_a_vote_or_with_forged_seals_is_refused(protocol: str, tmp_path: Path) -> None:
    text = genesis_text(protocol, 4)
    trust = read_trust(text.encode())
    with imported(tmp_path, text, 12, ADDED) as chain:
        # this block is the first block of the new validator
        number = next(n for n in range(6, 9) if chain.engine.author(chain.canonical(n)) == NEW)  # type: ignore[arg-type]
        bundle = account_bundle(chain, number, {}, False)
    without = replace(bundle, votes=bundle.votes[1:])
    refused(without, text, trust, "the votes lead to|unauthorized signer")
    refused(replace(bundle, votes=bundle.votes[::-1]), text, trust, "does not follow|the votes lead to|unauthorized")
    refused(replace(bundle, votes=(*bundle.votes, bundle.header)), text, trust, "is not before the block")
    other = read_trust(genesis_text(protocol, 3).encode())
    refused(bundle, genesis_text(protocol, 3), other, "the votes lead to|unauthorized signer")
    refused(replace(bundle, chain_id=1), text, trust, "chainId: 1 instead of")
    refused(replace(bundle, consensus="pow"), text, trust, "consensus: expected")
    refused(replace(bundle, hash=bytes(32)), text, trust, "block.hash")
    refused(replace(bundle, number=1), text, trust, "block.number")
    if protocol == "clique":
        assert len(bundle.confirmations) == 2
        refused(replace(bundle, confirmations=bundle.confirmations[:1]), text, trust, "2 of 5 signers confirm")
        refused(replace(bundle, confirmations=bundle.confirmations[1:]), text, trust, "does not follow block")


@PROTOCOLS
def test_any_changed_byte_is_refused(protocol: str, tmp_path: Path) -> None:
    """Ophion checks every kind of change. The standalone verifier, with a slow signature package, checks only some
    changes.
    """
    text = genesis_text(protocol, 4)
    trust = read_trust(text.encode())
    with imported(tmp_path, text, 24, ADDED) as chain:
        good = account_bundle(chain, 16, {ACCOUNTS[0]: [bytes(32)], MISSING: []}, False).encode()
    verify_bundle(ProofBundle.decode(good), trust)
    where = good.index(b'"accounts"')
    chance = random.Random(protocol)
    for attempt in range(CHANGES):
        changed = bytearray(good)
        position = chance.randrange(len(good))
        changed[position] ^= chance.randrange(1, 256)
        with pytest.raises(ProofError) as caught:
            verify_bundle(ProofBundle.decode(bytes(changed)), trust)
        # only the checksum detects that an absent account was changed into another absent account
        assert position > where or not str(caught.value).startswith("digest")
        if attempt % 50 == 0:
            with pytest.raises(Refused):
                verify(bytes(changed), json.loads(text))


def test_a_transition_replaces_the_validators(tmp_path: Path) -> None:
    listed = ["0x" + address.hex() for address in sorted(ACCOUNTS[2:7])]
    text = genesis_text("qbft", 4, transitions={"qbft": [{"block": 8, "validators": listed}]})
    trust = read_trust(text.encode())
    votes = ADDED | {7: Vote(ACCOUNTS[0], True), 9: Vote(ACCOUNTS[0], True), 10: Vote(ACCOUNTS[0], True)}
    with imported(tmp_path, text, 20, votes) as chain:
        for number in range(1, 21):
            verify_bundle(account_bundle(chain, number, {}, False), trust)
        statement(account_bundle(chain, 11, {}, False), text, trust)


def test_a_network_that_moves_from_ibft2_to_qbft_is_proven(tmp_path: Path) -> None:
    moved = {"qbft": {"startBlock": 9, "blockperiodseconds": 1, "epochlength": 7, "requesttimeoutseconds": 2}}
    text = genesis_text("ibft2", 4, **moved)
    trust = read_trust(text.encode())
    votes = ADDED | {number: Vote(ACCOUNTS[1], False) for number in (10, 11, 12)}
    with imported(tmp_path, text, 20, votes) as chain:
        names = set()
        for number in range(1, 21):
            bundle = account_bundle(chain, number, {}, False)
            names.add(bundle.consensus)
            verify_bundle(bundle, trust)
        statement(account_bundle(chain, 14, {}, False), text, trust)
    assert names == {"ibft2", "qbft"}


@PROTOCOLS
def test_a_checkpoint_stands_for_the_history_before_it(protocol: str, tmp_path: Path) -> None:
    text = genesis_text(protocol, 4)
    with imported(tmp_path, text, 20, ADDED) as chain:
        epoch = chain.canonical(EPOCH)
        assert epoch is not None
        members = chain.engine.members(epoch, chain)
        bundle = account_bundle(chain, 16, {}, False)
        short = account_bundle(chain, 16, {}, True)
    named = {"number": EPOCH, "hash": "0x" + epoch.hash.hex(), "validators": ["0x" + one.hex() for one in members]}
    statement(bundle, text, read_trust(text.encode(), json.dumps(named).encode()), named)
    statement(replace(bundle, votes=()), text, read_trust(text.encode(), json.dumps(named).encode()), named)
    known = {"number": 16, "hash": "0x" + bundle.hash.hex(), "validators": []}
    trust = read_trust(text.encode(), json.dumps(known).encode())
    assert statement(short, text, trust, known)["validators"] == "0x0"  # type: ignore[index]
    with pytest.raises(ProofError, match="needs none"):
        verify_bundle(bundle, trust)
    between = {**known, "number": 15, "hash": "0x" + bytes(32).hex()}
    with pytest.raises(ProofError, match="must be an epoch block or the proven block"):
        verify_bundle(bundle, read_trust(text.encode(), json.dumps(between).encode()))


@PROTOCOLS
def test_malformed_extra_data_is_refused(protocol: str, tmp_path: Path) -> None:
    text = genesis_text(protocol, 4)
    with imported(tmp_path, text, 6, {}) as chain:
        bundle = account_bundle(chain, 2, {}, False)
    for extra in (b"", b"\xc1", b"\xff" * 120, bytes(97)):
        broken = replace(Header.decode(bundle.header), extra_data=extra).encode()
        refused(replace(bundle, header=broken), text, read_trust(text.encode()), "header|block.hash")

"""Tests QBFT messages and headers: the test vectors of consensus.md 7.2 to 7.4."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ophion.consensus.bft.client_profiles import WireProfile
from ophion.consensus.bft.extra_data import BftExtraData, ExtraForm
from ophion.consensus.bft.message_factory import KeyMessageFactory
from ophion.consensus.bft.messages import PreparedRound, Proposal, RawMessage, RoundChange, Unjustified
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.round_change import RoundChanges
from ophion.consensus.bft.signed_parts import candidate_in_round, header_digest
from ophion.consensus.engine import Vote
from ophion.errors import DecodeError
from ophion.native.crypto import keccak256
from ophion.primitives import rlp
from tests.unit.consensus.bft.golden import (
    COMMITTEE,
    GENESIS_EXTRA,
    K1,
    K2,
    K3,
    K4,
    SEALED_EXTRA,
    message_block,
    message_header,
    unhex,
)

QBFT = Qbft()


def factory(key: object, profile: WireProfile = WireProfile.CLASSIC) -> KeyMessageFactory:
    return KeyMessageFactory(QBFT, key, profile)  # type: ignore[arg-type]


def prepared_in_round_0() -> PreparedRound:
    """Return the prepared certificate of k2 in round 0: prepares of k4, k2 and k3."""
    block = message_block(QBFT)
    return PreparedRound(0, block, tuple(factory(key).prepare(1, 0, block.digest) for key in (K4, K2, K3)), None)


def signing_hash(signed_part: bytes, code: int) -> bytes:
    return keccak256(rlp.list_of([rlp.encode_int(code), rlp.split_list(signed_part, 1024)[0]]))


# --- extra data ---------------------------------------------------------------------------------


def test_golden_7_3_extra_data_with_vote_and_seals_matches_other_clients() -> None:
    encoded = QBFT.encode_extra(SEALED_EXTRA, ExtraForm.FULL)
    vanity, a, b = SEALED_EXTRA.vanity.hex(), *(address.hex() for address in SEALED_EXTRA.validators)
    assert encoded.hex().startswith(f"f8f0a0{vanity}ea94{a}94{b}d794{a}81ff83fedcbaf886b841")
    assert QBFT.decode_extra(encoded) == SEALED_EXTRA


def test_golden_7_3_genesis_extra_data_of_one_and_of_four_validators() -> None:
    one = QBFT.encode_extra(BftExtraData(bytes(32), (K1.address,)), ExtraForm.FULL)
    assert one.hex() == f"f83aa0{'00' * 32}d594{K1.address.hex()}c080c0"
    four = QBFT.encode_extra(GENESIS_EXTRA, ExtraForm.FULL)
    listed = "".join(f"94{address.hex()}" for address in GENESIS_EXTRA.validators)
    assert four.hex() == f"f87aa0{'00' * 32}f854{listed}c080c0"


def test_q_11_both_spellings_of_a_drop_vote_give_one_block_hash() -> None:
    canonical = rlp.encode([bytes(32), [K1.address], [K2.address, b""], 0, []])
    other = rlp.encode([bytes(32), [K1.address], [K2.address, b"\0"], 0, []])
    assert canonical != other
    hashes = set()
    for data in (canonical, other):
        extra = QBFT.decode_extra(data)
        assert extra.vote == Vote(K2.address, False)
        header = replace(message_header(QBFT), extra_data=data)
        hashes.add(header_digest(QBFT, header, extra, ExtraForm.FOR_HASH))
    assert len(hashes) == 1


def test_items_behind_the_fifth_are_ignored() -> None:
    data = rlp.encode([bytes(32), [K1.address], [], 2, [], b"more"])
    assert QBFT.decode_extra(data) == BftExtraData(bytes(32), (K1.address,), None, 2)


@pytest.mark.parametrize(
    "items",
    [
        [bytes(32), [], [], 0],
        [bytes(33), [], [], 0, []],
        [bytes(32), [], b"", 0, []],
        [bytes(32), [], [], b"\0\1", []],
        [bytes(32), [], [], 2**32, []],
        [bytes(32), [], [], [], []],
        [bytes(32), [], [bytes(20), b"\x01"], 0, []],
        [bytes(32), [], [], 0, [bytes(66)]],
    ],
)
def test_malformed_extra_data_is_refused(items: list[rlp.Encodable]) -> None:
    with pytest.raises(DecodeError):
        QBFT.decode_extra(rlp.encode(items))


@given(st.binary(max_size=200))
def test_any_bytes_as_extra_data_give_a_value_or_a_decode_error(data: bytes) -> None:
    try:
        QBFT.decode_extra(data)
    except DecodeError:
        return


# --- hashes -------------------------------------------------------------------------------------


def test_golden_7_4_the_three_hashes_of_a_header() -> None:
    block = message_block(QBFT)
    assert block.hash.hex() == "9378d1078aa1f9c35a5fe6a2d93fec5ea908b9e5b744af475a50aefca750c82b"
    assert block.digest == block.hash
    later = candidate_in_round(QBFT, block, 1)
    assert later.digest.hex() == "fe9e533e54eb9082e7e6eabcf984512d83f6dccfb3b01018fc785b2dd1c9a7f7"
    assert later == message_block(QBFT, 1)


def test_golden_7_4_a_header_with_three_seals() -> None:
    block = message_block(QBFT)
    seals = tuple(key.sign(block.digest) for key in (K4, K2, K3))
    assert seals[1].hex() == (
        "4265c35b204734ddfa68ce3709e582f68bb7698838a4a8608294259d46a85d15"
        "62bf23ea1b32cb0843c1b2146a0f03eb4ce37011700a0d448e4d0764f06716f001"
    )
    encoded = message_header(QBFT, replace(GENESIS_EXTRA, seals=seals)).encode()
    assert len(encoded) == 832
    assert keccak256(encoded).hex() == "2b73b944c23d530f8c6b772573798804c05851baae02148ab3089279d20d7817"


# --- messages -----------------------------------------------------------------------------------


def test_golden_7_4_prepare_by_k2() -> None:
    message = factory(K2).prepare(1, 0, message_block(QBFT).digest)
    assert message.raw == RawMessage(
        0x13,
        unhex(
            "f867e30180a09378d1078aa1f9c35a5fe6a2d93fec5ea908b9e5b744af475a50aefca750c82bb841692d367f98911dac4366c653eca33230"
            "81a3ecc50efad58d10ca3e163c962c5a2119cdea8c15ed51478bdfedc790641856308350e8be5cf5bf63ed5937cb113101"
        ),
    )
    assert (
        signing_hash(message.raw.data, 0x13).hex() == "f9c62f003c8534d453f3b8df049744cd8b38aef7faea5c060caeee5c404c79bd"
    )
    assert QBFT.decode(message.raw) == message


def test_golden_7_4_commit_by_k2() -> None:
    block = message_block(QBFT)
    message = factory(K2).commit(1, 0, block.digest, block.digest)
    assert (
        signing_hash(message.raw.data, 0x14).hex() == "510ca59175c8d00cb66d2d3f75683ad43310c5c55b8ea648aee9a84580290c33"
    )
    assert len(message.raw.data) == 173
    assert message.fingerprint.hex() == "28640316f64be2513d330b1f2d83a8d1de83721e7f9467ef7bec6e9fb4a16d6c"
    assert QBFT.decode(message.raw) == message


@pytest.mark.parametrize(
    ("profile", "signed_hash", "size", "fingerprint"),
    [
        (
            WireProfile.CLASSIC,
            "c7d0648c431c7b41a17ac694f8c1a5604100f48f0d6654089ced9c2f875c2366",
            714,
            "2aa7552ec7eec8a7992db26c46eb495747603f9e82d9ff63aaa682951c4952a3",
        ),
        (
            WireProfile.BAL,
            "d861e5beedaef6a18d4397ea673b1c7ef163b217bea5bf512bae2fcf4fe04621",
            715,
            "addd50b930191e25cd9fa18f0173b27a76c33f0307905d158b1520a3aef0e8ad",
        ),
    ],
)
def test_golden_7_4_q_10_proposal_of_round_0_by_k4_in_both_profiles(
    profile: WireProfile, signed_hash: str, size: int, fingerprint: str
) -> None:
    message = factory(K4, profile).proposal(1, 0, message_block(QBFT), None)
    assert signing_hash(message.signed.encoded, 0x12).hex() == signed_hash
    assert len(message.raw.data) == size
    assert message.fingerprint.hex() == fingerprint
    decoded = QBFT.decode(message.raw)
    assert isinstance(decoded, Proposal)
    assert decoded.author == K4.address
    assert decoded == dataclasses.replace(message, round_changes=())
    QBFT.check_proposal(decoded, COMMITTEE, factory(K1))


def test_golden_7_4_unprepared_round_change_by_k2_in_both_profiles() -> None:
    signed = (
        "f847c30101c0b8418a9b5d7f1bdfd6743475ab6314b804748ad48ffbb5c9769aacb5502d00d5fc30428b86e50f1b01d6e6ec587899fab4adca4a"
        "81ef597db151491f77132497f7a700"
    )
    classic = factory(K2).round_change(1, 1, None)
    bal = factory(K2, WireProfile.BAL).round_change(1, 1, None)
    assert classic.raw == RawMessage(0x15, unhex(f"f84b{signed}c0c0"))
    assert bal.raw == RawMessage(0x15, unhex(f"f84c{signed}c080c0"))
    assert signing_hash(classic.signed.encoded, 0x15).hex() == (
        "834d3ecc779a1fe0ecb76fde2b3c50a8d549fb838f4b5469ad0a52565c94b3ce"
    )
    assert QBFT.decode(classic.raw) == classic
    assert QBFT.decode(bal.raw) == bal


def test_golden_7_4_prepared_round_change_by_k2() -> None:
    message = factory(K2).round_change(1, 1, prepared_in_round_0())
    assert signing_hash(message.signed.encoded, 0x15).hex() == (
        "ffc8d9353fd4d1ef966e3b1ec518e822c559812234c242a0e78006c505bebf97"
    )
    assert len(message.raw.data) == 1061
    assert message.fingerprint.hex() == "d5dd9b2879f7e6710516b1bcca74bc7ba65ded8aef013a6b5edc0a9edbf1c27f"
    decoded = QBFT.decode(message.raw)
    assert isinstance(decoded, RoundChange)
    QBFT.check_round_change(decoded, COMMITTEE)


@pytest.mark.parametrize("profile", list(WireProfile))
def test_a_justified_proposal_of_round_1_decodes_and_holds(profile: WireProfile) -> None:
    changes = RoundChanges()
    for key, prepared in ((K1, None), (K2, prepared_in_round_0()), (K3, None)):
        changes.add(factory(key, profile).round_change(1, 1, prepared))
    message = factory(K2, profile).proposal(1, 1, message_block(QBFT, 1), changes.certificate(1))
    decoded = QBFT.decode(message.raw)
    assert isinstance(decoded, Proposal)
    QBFT.check_proposal(decoded, COMMITTEE, factory(K1))


@pytest.mark.parametrize("inside", [0, 1])
def test_a_block_prepared_in_round_1_may_have_been_sent_with_round_0(inside: int) -> None:
    """A block that was prepared in round 1 may name round 0. GoQuorum always writes 0, and prepares the digest of that
    block.
    """
    block = message_block(QBFT, inside)
    prepared = PreparedRound(1, block, tuple(factory(key).prepare(1, 1, block.digest) for key in (K4, K2, K3)), None)
    changes = RoundChanges()
    for key, proof in ((K1, None), (K2, prepared), (K3, None)):
        changes.add(factory(key).round_change(1, 2, proof))
    proposer = next(key for key in (K1, K2, K3, K4) if key.address == COMMITTEE.proposer(2))
    for sent in (inside, 2):
        message = factory(proposer).proposal(1, 2, message_block(QBFT, sent), changes.certificate(2))
        decoded = QBFT.decode(message.raw)
        assert isinstance(decoded, Proposal)
        QBFT.check_proposal(decoded, COMMITTEE, factory(K1))


def test_a_new_block_names_its_round_or_0() -> None:
    """The validator refuses a new block that names a later round. The block could be prepared but not proposed again,
    so the chain would stop.
    """
    proposer = next(key for key in (K1, K2, K3, K4) if key.address == COMMITTEE.proposer(0))
    block = message_block(QBFT, 7)
    assert block.round == 7
    message = QBFT.decode(factory(proposer).proposal(1, 0, block, None).raw)
    assert isinstance(message, Proposal)
    with pytest.raises(Unjustified, match="names a later round"):
        QBFT.check_proposal(message, COMMITTEE, factory(K1))


def test_a_block_that_was_proposed_again_as_it_was_can_be_proposed_once_more() -> None:
    """A block prepared in round 2 may still name round 1, in which it was first proposed. Round 3 can propose this
    block again.
    """
    block = message_block(QBFT, 1)
    prepared = PreparedRound(2, block, tuple(factory(key).prepare(1, 2, block.digest) for key in (K4, K2, K3)), None)
    changes = RoundChanges()
    for key, proof in ((K1, None), (K2, prepared), (K3, None)):
        changes.add(factory(key).round_change(1, 3, proof))
    proposer = next(key for key in (K1, K2, K3, K4) if key.address == COMMITTEE.proposer(3))
    message = QBFT.decode(factory(proposer).proposal(1, 3, message_block(QBFT, 3), changes.certificate(3)).raw)
    assert isinstance(message, Proposal)
    QBFT.check_proposal(message, COMMITTEE, factory(K1))

"""Tests IBFT 2.0 messages and headers: the test vectors of consensus.md 7.2 to 7.4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ophion.consensus.bft.client_profiles import WireProfile
from ophion.consensus.bft.extra_data import BftExtraData, ExtraForm
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_factory import KeyMessageFactory
from ophion.consensus.bft.messages import Commit, Prepare, PreparedRound, Proposal, RawMessage, RoundChange
from ophion.consensus.bft.round_change import RoundChanges
from ophion.consensus.bft.signatures import message_author
from ophion.consensus.bft.signed_parts import candidate_in_round, header_digest
from ophion.consensus.engine import Vote
from ophion.errors import DecodeError
from ophion.native.crypto import keccak256
from ophion.primitives import rlp
from ophion.primitives.header import Header
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

IBFT2 = Ibft2()
PREPARE_OF_THE_ORIGINAL_CLIENT = unhex(
    "f873ef881234567890abcdef84fedcba98a0bc36789e7a1e281436464229828f817d6612f7b477d66591ff96a9e064bcc98ab8414e5dd57dcf2d08"
    "767bb894da5c4eb2998d00a010f2289dd473ed8da1d2df5d5051ea418da23dbc33064b2dfd6bbadbde0297b14f24a7cc84a77506cd51fa34a200"
)


def factory(key: object, profile: WireProfile = WireProfile.CLASSIC) -> KeyMessageFactory:
    return KeyMessageFactory(IBFT2, key, profile)  # type: ignore[arg-type]


def prepared_in_round_0() -> PreparedRound:
    """Return the prepared certificate of k2 in round 0: the proposal of k4 and the prepares of k2 and k3."""
    block = message_block(IBFT2)
    proposal = factory(K4).proposal(1, 0, block, None)
    prepares = tuple(factory(key).prepare(1, 0, block.digest) for key in (K2, K3))
    return PreparedRound(0, block, prepares, proposal.signed)


def signing_hash(data: bytes, code: int) -> bytes:
    """Return the hash that the author signs: over the message code and the first item of the message data."""
    items = rlp.split_list(data, 1024)
    payload = items[0]
    return keccak256(bytes((code,)) + payload)


# --- extra data ---------------------------------------------------------------------------------


def test_golden_7_3_extra_data_with_vote_and_seals_matches_other_clients() -> None:
    encoded = IBFT2.encode_extra(SEALED_EXTRA, ExtraForm.FULL)
    vanity, a, b = SEALED_EXTRA.vanity.hex(), *(address.hex() for address in SEALED_EXTRA.validators)
    assert encoded.hex().startswith(f"f8f1a0{vanity}ea94{a}94{b}d794{a}81ff8400fedcbaf886b841")
    assert keccak256(encoded).hex() == "30862c70966fcf833506073735848a5499b5be0582ff1e4631eaf545f9cc8541"
    assert IBFT2.decode_extra(encoded) == SEALED_EXTRA


def test_golden_7_3_genesis_extra_data_of_one_and_of_four_validators() -> None:
    one = IBFT2.encode_extra(BftExtraData(bytes(32), (K1.address,)), ExtraForm.FULL)
    assert one.hex() == f"f83ea0{'00' * 32}d594{K1.address.hex()}808400000000c0"
    four = IBFT2.encode_extra(GENESIS_EXTRA, ExtraForm.FULL)
    listed = "".join(f"94{address.hex()}" for address in GENESIS_EXTRA.validators)
    assert four.hex() == f"f87ea0{'00' * 32}f854{listed}808400000000c0"


def test_a_drop_vote_is_one_zero_byte() -> None:
    extra = replace(GENESIS_EXTRA, vote=Vote(K1.address, False))
    encoded = IBFT2.encode_extra(extra, ExtraForm.FULL)
    assert b"\xd6\x94" + K1.address + b"\x00" in encoded
    assert IBFT2.decode_extra(encoded) == extra


@pytest.mark.parametrize(
    "items",
    [
        [bytes(32), [], b"", bytes(4)],
        [bytes(32), [], b"", bytes(4), [], b""],
        [bytes(31), [], b"", bytes(4), []],
        [bytes(32), [], b"", b"", []],
        [bytes(32), [], b"", bytes(3), []],
        [bytes(32), [], b"", bytes(5), []],
        [bytes(32), [], b"\x01", bytes(4), []],
        [bytes(32), [bytes(19)], b"", bytes(4), []],
        [bytes(32), b"", b"", bytes(4), []],
        [bytes(32), [], [bytes(20), b"\x01"], bytes(4), []],
        [bytes(32), [], [bytes(20), b""], bytes(4), []],
        [bytes(32), [], [bytes(20)], bytes(4), []],
        [bytes(32), [], b"", bytes(4), [bytes(64)]],
        [bytes(32), [], b"", bytes(4), b""],
    ],
)
def test_extra_data_is_decoded_strictly(items: list[rlp.Encodable]) -> None:
    with pytest.raises(DecodeError):
        IBFT2.decode_extra(rlp.encode(items))


@given(st.binary(max_size=200))
def test_any_bytes_as_extra_data_give_a_value_or_a_decode_error(data: bytes) -> None:
    try:
        extra = IBFT2.decode_extra(data)
    except DecodeError:
        return
    assert IBFT2.encode_extra(extra, ExtraForm.FULL) == data


# --- hashes -------------------------------------------------------------------------------------


def test_golden_7_4_the_three_hashes_of_a_header() -> None:
    block = message_block(IBFT2)
    assert block.hash.hex() == "dbc08355215e22aae6f7e68a4a82fe6b4ae73ce53348d3cd2908d877144c94bc"
    assert block.digest.hex() == "1fa662b43f4952d272f4d3ea706a347d5138c8c90240edbdb8e1200c13ffe987"
    later = candidate_in_round(IBFT2, block, 1)
    assert later.digest.hex() == "0764050a1a3676b213b29a791ff8f69e4bdc13b70e22d5c97a88e269323813b7"
    assert later == message_block(IBFT2, 1)
    assert later.hash == block.hash


def test_golden_7_4_a_header_with_three_seals() -> None:
    block = message_block(IBFT2)
    seals = tuple(key.sign(block.digest) for key in (K4, K2, K3))
    assert seals[1].hex() == (
        "6525f89b12bc4ab3a1220b2f072991b26232b35245aee2769be5e5ecf05a9eb2"
        "096db5fedae4609cee926a102fceb4fc867ce24d7fab15deb5ef9c1cee1b28f000"
    )
    header = message_header(IBFT2, replace(GENESIS_EXTRA, seals=seals))
    encoded = header.encode()
    assert len(encoded) == 836
    assert keccak256(encoded).hex() == "5ae787c929d132caaf224f9f631eadf65336c7f797663620e497889c459833e0"
    extra = IBFT2.decode_extra(header.extra_data)
    assert header_digest(IBFT2, header, extra, ExtraForm.FOR_HASH) == block.hash


# --- messages -----------------------------------------------------------------------------------


def test_golden_7_2_the_prepare_of_the_original_client_is_reproduced_byte_for_byte() -> None:
    digest = keccak256(b"\0")
    ours = factory(K1).prepare(0x1234567890ABCDEF, 0xFEDCBA98, digest)
    assert ours.raw == RawMessage(1, PREPARE_OF_THE_ORIGINAL_CLIENT)
    theirs = IBFT2.decode(RawMessage(1, PREPARE_OF_THE_ORIGINAL_CLIENT))
    assert theirs == ours
    assert isinstance(theirs, Prepare)
    assert (theirs.height, theirs.round, theirs.author) == (0x1234567890ABCDEF, 0xFEDCBA98, K1.address)


def test_golden_7_4_prepare_by_k2() -> None:
    message = factory(K2).prepare(1, 0, message_block(IBFT2).digest)
    assert message.raw.data == unhex(
        "f873ef8800000000000000018400000000a01fa662b43f4952d272f4d3ea706a347d5138c8c90240edbdb8e1200c13ffe987b841336873f93a"
        "dc34c912afe977c3ac078b407f6d1e5c70fbc16de13c38b6999e65452ee1042fc7d706a97e099d15fa6308cf7b550e239057d4a61881c449"
        "5f9a6501"
    )
    assert signing_hash(message.raw.data, 1).hex() == "db4a9256e0e2c35df244711d8859f5712f5bb2e5f43eab9452bca6da31254b63"


def test_golden_7_4_commit_by_k2() -> None:
    block = message_block(IBFT2)
    message = factory(K2).commit(1, 0, block.digest, block.digest)
    assert signing_hash(message.raw.data, 2).hex() == "f1834d8936c62afb0a9acbe1c8d08fbbf6c787f6ad99ecdd81b9757e15f89110"
    assert len(message.raw.data) == 185
    assert message.fingerprint.hex() == "eea6ec8c1e7608fac2cbd2264b5e0d937deb05a4f832f32b5522fa8d63fcc57e"
    assert IBFT2.decode(message.raw) == message
    assert isinstance(message, Commit)
    assert message_author(block.digest, message.seal) == K2.address


@pytest.mark.parametrize(
    ("profile", "size", "fingerprint"),
    [
        (WireProfile.CLASSIC, 758, "d09ac6fda0c398a79040689dbbe12e7b9ca5167b5f4115fd8bdedce0d67fc153"),
        (WireProfile.BAL, 759, "b36ba6d57c0c150e8ce4ec4ed1fc9f61abc841b984ca5d69ad8ee0d6ae5337d6"),
    ],
)
def test_golden_7_4_proposal_of_round_0_by_k4(profile: WireProfile, size: int, fingerprint: str) -> None:
    message = factory(K4, profile).proposal(1, 0, message_block(IBFT2), None)
    assert signing_hash(message.signed.encoded, 0).hex() == (
        "55c00c1a32775789b0c40e397911c6d8ac1ff0c5a9bc452f6b246fd1e76a50aa"
    )
    assert len(message.raw.data) == size
    assert message.fingerprint.hex() == fingerprint
    assert IBFT2.decode(message.raw) == message


def test_golden_7_4_unprepared_round_change_by_k2() -> None:
    message = factory(K2).round_change(1, 1, None)
    assert message.raw == RawMessage(
        3,
        unhex(
            "f856f853cf880000000000000001840000000180b84158e1ed1f883314c310068715d7c67a10e5246651be9c3d970f83601642dbdec9"
            "06fd30ec8095620d84f92ade4286755b69757086b08bb6af25057ecb9a186ee90180"
        ),
    )
    assert signing_hash(message.signed.encoded, 3).hex() == (
        "cf36e7f153e9bf7f6e6b981fd8b0920ff0d41281af305f5ade1b9e8692773430"
    )
    assert IBFT2.decode(message.raw) == message


def test_golden_7_4_prepared_round_change_by_k2() -> None:
    message = factory(K2).round_change(1, 1, prepared_in_round_0())
    assert signing_hash(message.signed.encoded, 3).hex() == (
        "43a6ec8d87501d432ee4648cb3c0e3b24f1db5a51616f4074453905b58b8c820"
    )
    assert len(message.raw.data) == 1083
    assert message.fingerprint.hex() == "4775459ab5496d4bdb090c1af387c587b20d0e104f6bf6f9d2eaa9b60278a7f2"
    decoded = IBFT2.decode(message.raw)
    assert isinstance(decoded, RoundChange)
    assert decoded.signed.claim is not None
    assert decoded.signed.claim.digest == message_block(IBFT2).digest
    IBFT2.check_round_change(decoded, COMMITTEE)


def test_golden_7_4_proposal_of_round_1_by_k2_with_a_certificate() -> None:
    changes = RoundChanges()
    for key, prepared in ((K1, None), (K2, prepared_in_round_0()), (K3, None)):
        changes.add(factory(key).round_change(1, 1, prepared))
    message = factory(K2).proposal(1, 1, message_block(IBFT2, 1), changes.certificate(1))
    assert len(message.raw.data) == 1376
    assert message.fingerprint.hex() == "00e38ecf93bef8dd7213ad97afb89bb22320b14a566feeabda9c2b236c93bb77"
    decoded = IBFT2.decode(message.raw)
    assert isinstance(decoded, Proposal)
    IBFT2.check_proposal(decoded, COMMITTEE, factory(K1))


def test_both_profiles_are_decoded_and_certificates_are_the_same_in_both() -> None:
    classic = factory(K2).round_change(1, 1, prepared_in_round_0())
    bal = factory(K2, WireProfile.BAL).round_change(1, 1, prepared_in_round_0())
    assert len(bal.raw.data) == len(classic.raw.data) + 1
    first, second = IBFT2.decode(classic.raw), IBFT2.decode(bal.raw)
    assert isinstance(first, RoundChange)
    assert isinstance(second, RoundChange)
    assert first.signed.encoded == second.signed.encoded
    assert first.block == second.block


def test_unknown_codes_and_wrong_shapes_are_decode_errors() -> None:
    prepare = factory(K2).prepare(1, 0, bytes(32)).raw.data
    for code, data in (
        (4, prepare),
        (0, prepare),
        (3, prepare),
        (2, prepare),
        (1, b""),
        (1, b"\xc0"),
        (0, b"\xc3\xc0\xc0\xc0"),
    ):
        with pytest.raises(DecodeError):
            IBFT2.decode(RawMessage(code, data))


def test_a_header_survives_its_extra_data() -> None:
    header = message_header(IBFT2)
    assert Header.decode(header.encode()) == header

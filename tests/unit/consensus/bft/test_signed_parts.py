"""Tests common parts of both wire formats."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_codec import signatures_expected
from ophion.consensus.bft.message_factory import KeyMessageFactory
from ophion.consensus.bft.messages import MessageKind, RawMessage
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.signed_parts import SignedParts, candidate_in_round, candidate_of
from ophion.errors import DecodeError
from ophion.primitives import rlp
from tests.unit.consensus.bft.golden import K1, K2, message_block, message_header


def test_i_27_messages_with_other_signatures_are_dropped() -> None:
    data = KeyMessageFactory(Ibft2(), K1).prepare(1, 0, bytes(32)).raw.data
    payload, signature_item = rlp.split_list(data, 1024)
    signature = rlp.decode(signature_item)
    assert isinstance(signature, bytes)
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    high_s = signature[:32] + (order - int.from_bytes(signature[32:64], "big")).to_bytes(32, "big")
    for bad in (high_s + bytes((1 - signature[64],)), signature[:64] + bytes((signature[64] + 27,)), signature[:64]):
        with pytest.raises(DecodeError):
            Ibft2().decode(RawMessage(1, rlp.list_of([payload, rlp.encode_bytes(bad)])))


def test_a_block_of_other_shape_is_refused() -> None:
    header = message_header(Ibft2()).encode()
    for bad in (rlp.list_of([header]), rlp.list_of([header] + [rlp.EMPTY_LIST] * 4), rlp.EMPTY_LIST, b"\x80", b""):
        with pytest.raises(DecodeError):
            candidate_of(Ibft2(), bad)


def test_withdrawals_stay_with_the_block_when_its_round_changes() -> None:
    header = message_header(Ibft2()).encode()
    block = candidate_of(Ibft2(), rlp.list_of([header, rlp.EMPTY_LIST, rlp.EMPTY_LIST, rlp.EMPTY_LIST]))
    later = candidate_in_round(Ibft2(), block, 3)
    assert len(rlp.split_list(later.encoded, 1024)) == 4
    assert candidate_in_round(Ibft2(), later, 0) == block


def test_the_signatures_of_one_message_are_counted() -> None:
    parts = SignedParts(Ibft2.style, 3)
    vote = KeyMessageFactory(Ibft2(), K2).prepare(1, 0, message_block(Ibft2()).digest).raw.data
    assert len(parts.prepares(rlp.list_of([vote] * 3))) == 3
    with pytest.raises(DecodeError, match="too many signatures"):
        parts.prepare(vote)


def test_codes_name_kinds() -> None:
    assert Ibft2.style.kind(3) is MessageKind.ROUND_CHANGE
    with pytest.raises(DecodeError):
        Ibft2.style.kind(4)


@pytest.mark.parametrize("codec", [Qbft(), Ibft2()], ids=["qbft", "ibft2"])
def test_no_message_makes_the_decoder_look_at_more_items_than_it_expects(
    codec: Qbft | Ibft2, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = 0
    head = rlp.head

    def counted(data: bytes, offset: int) -> tuple[bool, int, int]:
        nonlocal heads
        heads += 1
        return head(data, offset)

    monkeypatch.setattr(rlp, "head", counted)
    many = rlp.list_of([b"\x01"] * 500_000)
    shapes = [many, rlp.list_of([many, many]), rlp.list_of([many] * 3), rlp.list_of([rlp.list_of([many, many]), many])]
    for code in codec.style.codes:
        for shape in shapes:
            heads = 0
            with pytest.raises(DecodeError):
                codec.decode(RawMessage(code, shape), signatures_expected(4))
            assert heads < 200

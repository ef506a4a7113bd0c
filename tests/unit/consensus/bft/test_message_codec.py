"""Tests the decoding of messages, and the number of signature checks per message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_codec import MessageCodec, signatures_expected
from ophion.consensus.bft.message_factory import KeyMessageFactory
from ophion.consensus.bft.messages import Commit, Prepare, PreparedRound, Proposal, RawMessage, RoundChange
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.round_change import RoundChanges
from ophion.errors import DecodeError
from ophion.primitives import rlp
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.consensus.bft.golden import K1, K2, K3, K4, message_block

both = pytest.mark.parametrize("protocol", [Ibft2(), Qbft()], ids=["ibft2", "qbft"])


def largest(protocol: Ibft2 | Qbft) -> Proposal:
    """Return a proposal of round 1 with prepared certificates of all four validators and all prepares."""
    block = message_block(protocol)
    signed = KeyMessageFactory(protocol, K4).proposal(1, 0, block, None).signed
    prepares = tuple(KeyMessageFactory(protocol, key).prepare(1, 0, block.digest) for key in (K1, K2, K3, K4))
    changes = RoundChanges()
    for key in (K1, K2, K3, K4):
        changes.add(KeyMessageFactory(protocol, key).round_change(1, 1, PreparedRound(0, block, prepares, signed)))
    return KeyMessageFactory(protocol, K2).proposal(1, 1, message_block(protocol, 1), changes.certificate(1))


@both
def test_every_kind_is_read_as_it_was_written(protocol: Ibft2 | Qbft) -> None:
    factory, block = KeyMessageFactory(protocol, K2), message_block(protocol)
    codec: MessageCodec = protocol
    for message, kind in (
        (factory.prepare(1, 0, block.digest), Prepare),
        (factory.commit(1, 0, block.digest, block.digest), Commit),
        (factory.round_change(1, 1, None), RoundChange),
        (largest(protocol), Proposal),
    ):
        assert type(codec.decode(message.raw)) is kind
        assert codec.decode(message.raw).author == K2.address


@both
def test_the_largest_honest_message_fits_and_a_flood_does_not(protocol: Ibft2 | Qbft) -> None:
    message = largest(protocol)
    protocol.decode(message.raw, 1 + 4 * (4 + 2))
    with pytest.raises(DecodeError, match="too many signatures"):
        protocol.decode(message.raw, 8)
    assert 1 + 4 * (4 + 2) <= signatures_expected(4) < 300
    assert signatures_expected(200) == 20_000
    vote = KeyMessageFactory(protocol, K2).prepare(1, 0, bytes(32)).raw.data
    change = KeyMessageFactory(protocol, K2).round_change(1, 1, None).raw
    flood = rlp.list_of([*rlp.split_list(change.data, 1024)[:2], rlp.list_of([vote] * 300)])
    if isinstance(protocol, Qbft):
        with pytest.raises(DecodeError, match="too many signatures"):
            protocol.decode(type(change)(change.code, flood), signatures_expected(4))


@both
def test_a_prepared_block_with_another_body_is_refused(protocol: Ibft2 | Qbft) -> None:
    """The digest of the prepared block still matches, because a digest covers only the header."""
    block = message_block(protocol)
    header = rlp.split_list(block.encoded, 1024)[0]
    transaction = legacy_transaction(DEV_KEYS[0], 0)
    poisoned = protocol.candidate(rlp.list_of([header, rlp.list_of([transaction]), rlp.EMPTY_LIST]))
    assert (poisoned.digest, poisoned.hash) == (block.digest, block.hash)
    signed = KeyMessageFactory(protocol, K4).proposal(1, 0, block, None).signed
    prepares = tuple(KeyMessageFactory(protocol, key).prepare(1, 0, block.digest) for key in (K1, K2, K3))
    for carried, is_good in ((block, True), (poisoned, False)):
        change = KeyMessageFactory(protocol, K2).round_change(1, 1, PreparedRound(0, carried, prepares, signed))
        if is_good:
            assert protocol.decode(change.raw).author == K2.address
        else:
            with pytest.raises(DecodeError, match="the body of the block is another one"):
                protocol.decode(change.raw)


@both
def test_every_changed_byte_of_a_message_is_noticed(protocol: Ibft2 | Qbft) -> None:
    """A message with a changed byte has another author or another content, or cannot be decoded."""
    message = KeyMessageFactory(protocol, K2).prepare(1, 0, message_block(protocol).digest)
    for position in range(len(message.raw.data)):
        data = bytearray(message.raw.data)
        data[position] ^= 1
        try:
            changed = protocol.decode(RawMessage(message.raw.code, bytes(data)))
        except DecodeError:
            continue
        assert changed.author != K2.address


@both
@given(st.integers(0, 0x20), st.binary(max_size=300))
def test_any_bytes_as_message_give_a_decode_error(protocol: Ibft2 | Qbft, code: int, data: bytes) -> None:
    with pytest.raises(DecodeError):
        protocol.decode(RawMessage(code, data))

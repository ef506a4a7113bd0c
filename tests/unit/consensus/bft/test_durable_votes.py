"""Tests durable votes: encoding and rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_factory import BftProtocol, KeyMessageFactory
from ophion.consensus.bft.messages import PreparedRound
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.errors import DecodeError
from ophion.primitives import rlp
from tests.unit.consensus.bft.golden import K2, K3, K4, message_block

PROTOCOLS: list[BftProtocol] = [Ibft2(), Qbft()]


def prepared(protocol: BftProtocol) -> PreparedRound:
    block = message_block(protocol)
    signed = KeyMessageFactory(protocol, K4).proposal(1, 0, block, None).signed if protocol.certifies_proposal else None
    votes = tuple(KeyMessageFactory(protocol, key).prepare(1, 0, block.digest) for key in (K4, K2, K3))
    return PreparedRound(0, block, votes, signed)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_a_memory_survives_encoding(protocol: BftProtocol) -> None:
    proof = prepared(protocol)
    for durable_votes in (
        DurableVotes(1),
        DurableVotes(9, 4),
        DurableVotes(1, 2, proof.digest),
        DurableVotes(1, 2, proof.digest, proof),
    ):
        again = DurableVotes.decode(durable_votes.encode(), protocol)
        assert (again.height, again.round, again.vote) == (
            durable_votes.height,
            durable_votes.round,
            durable_votes.vote,
        )
        assert (again.prepared is None) is (durable_votes.prepared is None)
        if again.prepared is not None:
            assert again.prepared.block == proof.block
            assert again.prepared.proposal == proof.proposal
            assert [vote.raw for vote in again.prepared.prepares] == [vote.raw for vote in proof.prepares]
            change = KeyMessageFactory(protocol, K2).round_change(1, 3, again.prepared)
            assert change.raw == KeyMessageFactory(protocol, K2).round_change(1, 3, proof).raw


def test_where_a_restarted_validator_goes_on() -> None:
    assert DurableVotes(1).resume_round == 0
    assert DurableVotes(1, 3).resume_round == 3
    assert DurableVotes(1, 0, bytes(32)).resume_round == 1
    assert DurableVotes(1, 3, bytes(32)).resume_round == 4


@pytest.mark.parametrize(
    "items",
    [
        [],
        [2, 1, 0, b"", []],
        [1, 1, 0, b""],
        [1, 1, 0, bytes(31), []],
        [1, 1, 0, b"", b""],
        [1, 1, 0, b"", [0, b"", []]],
        [1, 1, 0, b"", [0, b"", b"", b""]],
        [1, 1, 0, b"", [0, b"", [], b""]],
    ],
)
def test_other_bytes_are_a_decode_error(items: list[rlp.Encodable]) -> None:
    with pytest.raises(DecodeError):
        DurableVotes.decode(rlp.encode(items), Ibft2())


@given(st.binary(max_size=100))
def test_any_bytes_give_a_memory_or_a_decode_error(data: bytes) -> None:
    try:
        DurableVotes.decode(data, Qbft())
    except DecodeError:
        return

"""Tests the rules of the shared vote record against a model of all messages that nodes with one key send."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ophion.consensus.bft.vote_record import NOT_PREPARED, VoteRecord, is_successor, replacement
from ophion.errors import DecodeError

X, Y = b"\x01" * 32, b"\x02" * 32


def test_a_record_is_read_as_it_was_written() -> None:
    for record in (VoteRecord(7), VoteRecord(7, 2, X), VoteRecord(2**40, 3, None, 1, Y)):
        assert VoteRecord.decode(record.encode()) == record
    assert VoteRecord(7, 2, X).encode().startswith(b'{"height":7,"round":2,"vote":"0x0101')


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"height":1}', b'{"height":1,"round":0,"vote":"0x01","preparedRound":0}']
)
def test_a_value_that_is_no_record_is_an_error(text: bytes) -> None:
    with pytest.raises(DecodeError, match="shared vote record"):
        VoteRecord.decode(text)


def test_the_first_record_and_later_heights_are_stored() -> None:
    assert replacement(None, VoteRecord(5, 1, X)) == VoteRecord(5, 1, X)
    assert replacement(VoteRecord(5, 3, X, 3, X), VoteRecord(6)) == VoteRecord(6)
    assert replacement(VoteRecord(5), VoteRecord(4, 9, X)) is None


def test_one_digest_per_round() -> None:
    voted = VoteRecord(5, 1, X)
    assert replacement(voted, voted) == voted
    assert replacement(voted, VoteRecord(5, 1, Y)) is None
    assert replacement(VoteRecord(5, 1), VoteRecord(5, 1, Y)) == VoteRecord(5, 1, Y)
    assert replacement(voted, VoteRecord(5, 0, X)) is None, "no vote in a round that was left"


def test_a_round_is_requested_once_and_not_after_a_vote_in_it() -> None:
    asked = VoteRecord(5, 2, None, 1, X)
    assert replacement(asked, asked) == asked
    assert replacement(asked, VoteRecord(5, 2)) is None, "another claim"
    assert replacement(VoteRecord(5, 2), asked) is None, "another claim"
    assert replacement(VoteRecord(5, 2, X, 1, X), asked) is None


def test_a_round_change_carries_the_latest_proof() -> None:
    committed = VoteRecord(5, 1, X, 1, X)
    assert replacement(committed, VoteRecord(5, 2)) is None
    assert replacement(committed, VoteRecord(5, 2, None, 1, Y)) is None
    assert replacement(committed, VoteRecord(5, 2, None, 1, X)) == VoteRecord(5, 2, None, 1, X)


def test_a_vote_keeps_the_proof_of_the_other_node() -> None:
    committed = VoteRecord(5, 1, X, 1, X)
    assert replacement(committed, VoteRecord(5, 2, Y)) == VoteRecord(5, 2, Y, 1, X)
    assert replacement(committed, VoteRecord(5, 1, X)) == committed


_PREPARED = st.one_of(st.just((NOT_PREPARED, None)), st.tuples(st.integers(0, 3), st.sampled_from([X, Y])))


@st.composite
def _wanted(draw: st.DrawFn) -> VoteRecord:
    number = draw(st.integers(0, 3))
    vote = draw(st.sampled_from([None, X, Y]))
    round_, digest = draw(_PREPARED)
    if round_ > number - (vote is None):
        round_, digest = NOT_PREPARED, None
    if round_ == number:
        digest = vote
    return VoteRecord(draw(st.integers(1, 2)), number, vote, round_, digest)


@settings(max_examples=500, deadline=None)
@given(st.lists(_wanted(), max_size=30))
def test_whatever_nodes_want_they_act_as_one_validator(wanted_votes: list[VoteRecord]) -> None:
    """The model remembers every message sent. A second node may try to send any message, in any order."""
    stored: VoteRecord | None = None
    votes: dict[tuple[int, int], bytes] = {}
    claims: dict[tuple[int, int], tuple[int, bytes | None]] = {}
    reached = (0, -1)
    commits: dict[int, int] = {}
    for wanted in wanted_votes:
        result = replacement(stored, wanted)
        if result is None:
            assert stored is not None
            continue
        stored = result
        at = (wanted.height, wanted.round)
        assert at >= reached, "no message of an earlier round"
        reached = at
        if wanted.vote is None:
            claim = (wanted.prepared_round, wanted.prepared)
            assert claims.setdefault(at, claim) == claim, "two different round changes"
            assert at not in votes, "a round change after a vote in its round"
            assert wanted.prepared_round >= commits.get(wanted.height, NOT_PREPARED), "a round change hides a commit"
        else:
            assert votes.setdefault(at, wanted.vote) == wanted.vote, "two different votes"
            if wanted.prepared_round == wanted.round:
                commits[wanted.height] = wanted.round
        assert replacement(stored, wanted) == stored, "a repeated request is answered alike"


@settings(max_examples=500, deadline=None)
@given(st.lists(_wanted(), max_size=30))
def test_a_record_is_a_successor_of_all_that_it_has_replaced(wanted: list[VoteRecord]) -> None:
    records: list[VoteRecord] = []
    for record in wanted:
        stored = replacement(records[-1] if records else None, record)
        records += [] if stored is None else [stored]
        assert all(is_successor(earlier, records[-1]) for earlier in records)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (VoteRecord(5, 1), VoteRecord(5, 1, X)),
        (VoteRecord(5, 1, X), VoteRecord(5, 1, X, 1, X)),
        (VoteRecord(5, 1, X), VoteRecord(5, 2)),
        (VoteRecord(5, 1, X, 1, X), VoteRecord(5, 2, Y, 2, Y)),
        (VoteRecord(5, 1, X, 1, X), VoteRecord(6)),
    ],
)
def test_a_record_does_not_go_back(earlier: VoteRecord, later: VoteRecord) -> None:
    assert is_successor(earlier, later)
    assert not is_successor(later, earlier)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (VoteRecord(5, 1, X), VoteRecord(5, 1, Y)),
        (VoteRecord(5, 1, X, 0, X), VoteRecord(5, 2, None, 0, Y)),
        (VoteRecord(5, 1, X, 1, X), VoteRecord(5, 2, None, 0, X)),
    ],
)
def test_records_that_contradict_each_other(one: VoteRecord, other: VoteRecord) -> None:
    assert not is_successor(one, other)
    assert not is_successor(other, one)

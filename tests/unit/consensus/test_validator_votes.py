"""Tests votes of the operator, and the tally of IBFT 2.0 and QBFT (consensus.md 2.12, 4.1)."""

from __future__ import annotations

import pytest

from ophion.consensus.engine import Vote
from ophion.consensus.validator_votes import LocalProposals, Tally
from ophion.errors import DecodeError

MEMBERS = {name: bytes((ord(name),)) * 20 for name in "ABCDEFG"}


def play(members: str, blocks: str) -> str:
    """Return the validators after blocks such as `A+B` (A votes to add B), `C-A` or `A` (no vote)."""
    tally = Tally.of(MEMBERS[name] for name in members)
    for block in blocks.split():
        if len(block) > 1:
            tally = tally.apply(MEMBERS[block[0]], Vote(MEMBERS[block[2]], block[1] == "+"))
    return "".join(chr(address[0]) for address in tally.validators)


# for these scenarios of consensus.md 1.9, both counting rules give the same tally
@pytest.mark.parametrize(
    ("members", "blocks", "expected"),
    [
        ("A", "A", "A"),
        ("A", "A+B B A+C", "AB"),
        ("AB", "A+C B+C A+D B+D C A+E B+E", "ABCD"),
        ("A", "A-A", ""),
        ("AB", "A-B", "AB"),
        ("AB", "A-B B-B", "A"),
        ("ABC", "A-C B-C", "AB"),
        ("ABCD", "A-C B-C", "ABCD"),
        ("ABCD", "A-D B-D C-D", "ABC"),
        ("AB", "A+C B A+C B A+C", "AB"),
        ("AB", "A+C B A+D B A B+D A B+C", "ABCD"),
        ("AB", "A-B B A-B B A-B", "AB"),
        ("ABCD", "A-C B C A-D B C A B-D C-D A B-C", "AB"),
        ("ABC", "C-B A-C B-C A-B", "AB"),
        ("ABC", "C+D A-C B-C A+D", "AB"),
        ("ABCD", "A-C B C A-D B-C C A B-D C-D", "ABC"),
        ("ABCD", "A-C B C A-D B-C C A B-D C-D A C+C", "AB"),
        ("ABCD", "A-C B C A-D B-C C A B-D C-D A B+C", "ABC"),
        ("ABCDE", "A+F B+F C+F D-F E-F B-F C-F D+F E+F B-A C-A D-A B+F", "BCDEF"),
    ],
)
def test_shared_scenarios(members: str, blocks: str, expected: str) -> None:
    assert play(members, blocks) == expected


@pytest.mark.parametrize(
    ("members", "blocks", "expected"),
    [
        ("ABC", "B+A C-A A+A B-A", "ABC"),
        ("ABC", "B+B A-B C+B B C-B", "ABC"),
        ("ABCD", "D-A C-A A D+A B-A C+A A-A D B+A A C-A D-A", "ABCD"),
    ],
)
def test_votes_without_effect_are_counted_as_besu_counts_them(members: str, blocks: str, expected: str) -> None:
    """On these chains, the counting rule of geth's Clique would give another result (consensus.md 1.6)."""
    assert play(members, blocks) == expected


def test_a_later_vote_replaces_an_earlier_one_of_the_same_voter() -> None:
    assert play("ABC", "A+D A-D B+D") == "ABC"
    assert play("ABC", "A+D A-D B+D A+D") == "ABCD"


def test_votes_of_a_dropped_validator_are_gone() -> None:
    tally = Tally.of(MEMBERS[name] for name in "ABC")
    tally = tally.apply(MEMBERS["C"], Vote(MEMBERS["D"], True))
    for name in "AB":
        tally = tally.apply(MEMBERS[name], Vote(MEMBERS["C"], False))
    assert tally.standing(MEMBERS["C"], MEMBERS["D"]) is None
    assert tally.adds == {}
    assert tally.drops == {}


def test_which_votes_are_useful() -> None:
    a, b, d = MEMBERS["A"], MEMBERS["B"], MEMBERS["D"]
    tally = Tally.of((a, b, MEMBERS["C"]))
    assert tally.is_useful(a, Vote(d, True))
    assert not tally.is_useful(a, Vote(d, False))
    assert tally.is_useful(a, Vote(b, False))
    assert not tally.is_useful(a, Vote(b, True))
    voted = tally.apply(a, Vote(d, True))
    assert voted.standing(a, d) is True
    assert not voted.is_useful(a, Vote(d, True))
    assert voted.is_useful(a, Vote(d, False)), "it takes the vote back"
    assert voted.is_useful(b, Vote(d, True))


def test_proposals_stay_until_discarded_and_the_latest_one_counts() -> None:
    proposals = LocalProposals()
    proposals.propose(MEMBERS["A"], True)
    proposals.propose(MEMBERS["B"], True)
    proposals.propose(MEMBERS["A"], False)
    assert proposals.pending() == {MEMBERS["A"]: False, MEMBERS["B"]: True}
    proposals.discard(MEMBERS["B"])
    proposals.discard(MEMBERS["G"])
    assert proposals.pending() == {MEMBERS["A"]: False}
    assert proposals.next_vote(lambda _vote: True) == Vote(MEMBERS["A"], False)
    assert proposals.pending() == {MEMBERS["A"]: False}


def test_useful_proposals_take_turns() -> None:
    proposals = LocalProposals()
    assert proposals.next_vote(lambda _vote: True) is None
    for name in "CAB":
        proposals.propose(MEMBERS[name], True)
    turns = [proposals.next_vote(lambda vote: vote.target != MEMBERS["B"]) for _ in range(4)]
    assert ["".join(chr(vote.target[0])) for vote in turns if vote is not None] == ["A", "C", "A", "C"]


def test_a_tally_survives_the_disk() -> None:
    members = [bytes([number]) * 20 for number in range(1, 6)]
    tally = Tally.of(members)
    for voter, target, adds in ((0, 0xAA, True), (1, 0xBB, True), (2, 0xAA, True), (0, 0x03, False)):
        tally = tally.apply(members[voter], Vote(bytes([target]) * 20, adds))
    assert tally.adds
    assert tally.drops
    assert Tally.decode(tally.encode()) == tally
    record = tally.encode()
    for damaged in (
        b"",
        b"\xc0",
        record[:-1],
        b"\xc4\x02\x80\xc0\xc0",
        b"\xc4\x01\x80\xc0\xc0",
        b"\xc5\x01\xc0\xc1\x80\xc0",
    ):
        with pytest.raises(DecodeError):
            Tally.decode(damaged)

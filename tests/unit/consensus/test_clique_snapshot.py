"""Tests signers computed from headers: the scenarios of consensus.md 1.9 and the corner cases of 1.6."""

from __future__ import annotations

import pytest

from ophion.consensus.clique import CliqueEngine
from ophion.consensus.clique_snapshot import Snapshot
from ophion.consensus.engine import Vote
from ophion.consensus.header_snapshots import CHECKPOINT_DISTANCE
from ophion.errors import DecodeError, InvalidHeader, UnknownParent
from tests.unit.consensus.stories import CliqueStory, address_of

CASCADE = "A-C B C A-D B-C C A B-D C-D"

SCENARIOS = [
    ("01 single signer, no votes cast", 0, "A", "A", "A"),
    ("02 single signer, voting to add two others", 0, "A", "A+B B A+C", "AB"),
    ("03 two signers, voting to add three others", 0, "AB", "A+C B+C A+D B+D C A+E B+E", "ABCD"),
    ("04 single signer, dropping itself", 0, "A", "A-A", ""),
    ("05 two signers, mutual consent to drop not fulfilled", 0, "AB", "A-B", "AB"),
    ("06 two signers, mutual consent to drop fulfilled", 0, "AB", "A-B B-B", "A"),
    ("07 three signers, two drop the third", 0, "ABC", "A-C B-C", "AB"),
    ("08 four signers, two are not enough to drop", 0, "ABCD", "A-C B-C", "ABCD"),
    ("09 four signers, three are enough to drop", 0, "ABCD", "A-D B-D C-D", "ABC"),
    ("10 authorizations counted once per signer per target", 0, "AB", "A+C B A+C B A+C", "AB"),
    ("11 authorizing several accounts concurrently", 0, "AB", "A+C B A+D B A B+D A B+C", "ABCD"),
    ("12 deauthorizations counted once per signer per target", 0, "AB", "A-B B A-B B A-B", "AB"),
    ("13 deauthorizing several accounts concurrently", 0, "ABCD", "A-C B C A-D B C A B-D C-D A B-C", "AB"),
    ("14 deauth votes of deauthorized signers discarded", 0, "ABC", "C-B A-C B-C A-B", "AB"),
    ("15 auth votes of deauthorized signers discarded", 0, "ABC", "C+D A-C B-C A+D", "AB"),
    ("16 cascading changes not allowed", 0, "ABCD", CASCADE, "ABC"),
    ("17 consensus out of bounds executes on touch", 0, "ABCD", f"{CASCADE} A C+C", "AB"),
    ("18 consensus out of bounds may end on first touch", 0, "ABCD", f"{CASCADE} A B+C", "ABC"),
    (
        "19 pending votes do not survive authorization changes",
        0,
        "ABCDE",
        "A+F B+F C+F D-F E-F B-F C-F D+F E+F B-A C-A D-A B+F",
        "BCDEF",
    ),
    ("20 epoch transitions reset all votes", 3, "AB", "A+C B A* B+C", "AB"),
]


@pytest.mark.parametrize(
    ("epoch", "signers", "blocks", "expected"), [s[1:] for s in SCENARIOS], ids=[s[0] for s in SCENARIOS]
)
def test_c_13_scenario(epoch: int, signers: str, blocks: str, expected: str) -> None:
    story = CliqueStory(signers, epoch or 30_000)
    story.play(blocks)
    assert story.signers() == expected


@pytest.mark.parametrize(
    ("epoch", "signers", "blocks", "rule"),
    [
        (30_000, "A", "B", "unauthorized signer"),
        (30_000, "AB", "A A", "recently signed"),
        (3, "ABC", "A B A* A", "recently signed"),
    ],
    ids=["21 unauthorized signer", "22 signer that signed recently", "23 recency not reset on epoch block"],
)
def test_c_13_scenario_that_ends_in_an_error(epoch: int, signers: str, blocks: str, rule: str) -> None:
    story = CliqueStory(signers, epoch)
    *good, bad = blocks.split()
    story.play(" ".join(good))
    with pytest.raises(InvalidHeader) as caught:
        story.play(bad)
    assert caught.value.rule == rule


def test_c_13_scenario_24_recency_is_not_reset_on_an_epoch_block_by_a_restart() -> None:
    story = CliqueStory("ABC", epoch=3)
    story.play("A B A*")
    # a new engine has an empty cache and knows only the headers
    story.engine = story.chain.engine = CliqueEngine(story.spec)
    with pytest.raises(InvalidHeader, match="recently signed"):
        story.play("A")


@pytest.mark.parametrize(
    ("signers", "blocks", "expected"),
    [
        ("ABC", "B+A C-A A+A B-A", "BC"),
        ("ABC", "B+B A-B C+B B C-B", "AC"),
        ("ABCD", "D-A C-A A D+A B-A C+A A-A D B+A A C-A D-A", "BCD"),
    ],
)
def test_c_16_votes_without_effect_do_not_count_as_in_geth(signers: str, blocks: str, expected: str) -> None:
    story = CliqueStory(signers)
    story.play(blocks)
    assert story.signers() == expected


def test_c_14_standing_votes_vanish_at_the_epoch_block_and_are_cast_again_after_it() -> None:
    story = CliqueStory("AB", epoch=10)
    story.play("A+C B A B A B A B A B*")
    assert story.signers() == "AB"
    story.play("A B+C A B")
    assert story.signers() == "AB"
    story.play("A+C")
    assert story.signers() == "ABC"


def test_c_15_removal_of_the_in_turn_signer_shrinks_set_and_limit_at_once() -> None:
    story = CliqueStory("ABCD")
    story.play("A-D B-D C-D")
    snapshot = story.engine.snapshot(story.chain.head, story.chain)
    assert (len(snapshot.signers), snapshot.limit) == (3, 2)
    assert snapshot.in_turn(4) == sorted(address_of(letter) for letter in "ABC")[4 % 3]
    story.play("A")


def test_a_snapshot_can_be_rebuilt_from_headers_at_any_block() -> None:
    story = CliqueStory("ABC", epoch=5)
    story.play("A+D B+D C A+E B* C+E A+E B C D* A C+F B+F")
    fresh = CliqueEngine(story.spec)
    for header in story.chain.headers.values():
        assert fresh.snapshot(header, story.chain) == CliqueEngine(story.spec).snapshot(header, story.chain)
        assert fresh.snapshot(header, story.chain).signers == story.engine.snapshot(header, story.chain).signers


def test_a_snapshot_of_a_chain_with_a_hole_cannot_be_made() -> None:
    story = CliqueStory("AB")
    story.play("A B A")
    parent = story.chain.headers.pop(story.chain.head.parent_hash)
    with pytest.raises(UnknownParent):
        CliqueEngine(story.spec).snapshot(story.chain.head, story.chain)
    story.chain.headers[parent.hash] = parent


@pytest.mark.parametrize(("count", "limit"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (6, 4), (7, 4)])
def test_a_signer_makes_one_of_so_many_blocks(count: int, limit: int) -> None:
    signers = tuple(bytes([number]) * 20 for number in range(1, count + 1))
    barred = [
        seen for seen in range(1, 10) if not Snapshot(9, signers, (), ((seen, signers[0]),)).may_sign(signers[0], 10)
    ]
    assert Snapshot(9, signers).limit == limit
    assert barred == list(range(11 - limit, 10))


def test_only_votes_that_change_something_are_meaningful() -> None:
    signer, other = b"\x01" * 20, b"\x02" * 20
    snapshot = Snapshot(0, (signer,))
    assert snapshot.is_meaningful(Vote(other, True))
    assert snapshot.is_meaningful(Vote(signer, False))
    assert not snapshot.is_meaningful(Vote(signer, True))
    assert not snapshot.is_meaningful(Vote(other, False))
    after = snapshot.apply(1, signer, Vote(other, True), is_epoch=False)
    assert after.signers == (signer, other)
    assert after.tally(other) == 0


def test_a_snapshot_survives_the_disk() -> None:
    story = CliqueStory("ABCDE")
    story.play("A+F B-C C+G D E+F A-C")
    snapshot = story.engine.snapshot(story.chain.head, story.chain)
    assert len(snapshot.votes) > 2
    assert snapshot.recents
    assert Snapshot.decode(snapshot.encode()) == snapshot
    record = story.engine.checkpoint(story.chain.head, story.chain)
    assert record == snapshot.encode()
    for damaged in (b"", b"\xc0", record[:-1], record.replace(b"\x01", b"\x02", 1), b"\xc5\x01\x80\x80\x80\x80"):
        with pytest.raises(DecodeError):
            Snapshot.decode(damaged)


def test_a_restarted_signer_begins_at_the_checkpoint_and_judges_as_before() -> None:
    story = CliqueStory("ABC")
    story.play("A+D " + "B C A " * 84 + "B C B+D A")
    assert story.chain.head.number == CHECKPOINT_DISTANCE + 1
    marked = story.chain.canonical(CHECKPOINT_DISTANCE)
    assert marked is not None
    record = story.engine.checkpoint(marked, story.chain)
    assert record is not None
    story.chain.checkpoints[marked.hash] = record
    before = story.engine.snapshot(story.chain.head, story.chain)
    # delete all headers before the checkpoint, so that reading an earlier header fails
    for header in [header for header in story.chain.headers.values() if header.number < CHECKPOINT_DISTANCE]:
        del story.chain.headers[header.hash]
    story.engine = story.chain.engine = CliqueEngine(story.spec)
    assert story.engine.snapshot(story.chain.head, story.chain) == before
    assert story.signers() == "ABCD"
    with pytest.raises(InvalidHeader, match="recently signed"):
        story.play("A")
    story.play("D C")

"""Tests Clique scenarios of consensus.md 6.1 with whole networks: turns, outages, partitions, forks and clocks."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest

from ophion.consensus.clique import IN_TURN, OUT_OF_TURN, CliqueEngine
from ophion.consensus.engine import Vote
from ophion.consensus.validator_votes import Tally
from ophion.testing.simulation.clique import SimulatedCliqueNetwork
from tests.unit.consensus.stories import FAR, CliqueStory, address_of


def world(signers: int, seed: int = 3, **options: int) -> SimulatedCliqueNetwork:
    found = SimulatedCliqueNetwork(signers, seed, **options)  # type: ignore[arg-type]
    found.start()
    return found


def reached(found: SimulatedCliqueNetwork, number: int) -> Callable[[], bool]:
    return lambda: all(member.head.number >= number for member in found.members if member.is_up)


def authors(found: SimulatedCliqueNetwork, member: int = 0) -> list[int]:
    return [found.author(block) for block in found.chain(found.members[member])[1:]]


def heads(found: SimulatedCliqueNetwork) -> set[bytes]:
    return {member.head.hash for member in found.members if member.is_up}


def test_c_01_a_single_signer_makes_a_block_each_period_always_in_turn() -> None:
    found = world(1, period_s=2)
    found.run(20.5)
    chain = found.chain(found.members[0])[1:]
    assert [block.timestamp for block in chain] == list(range(2, 21, 2))
    assert {block.header.difficulty for block in chain} == {IN_TURN}


def test_c_02_three_signers_take_turns_without_forks() -> None:
    found = world(3)
    found.run(30.5)
    assert reached(found, 30)()
    assert authors(found) == [number % 3 for number in range(1, 31)]
    assert {block.header.difficulty for block in found.chain(found.members[0])[1:]} == {IN_TURN}
    assert sum(member.reorgs for member in found.members) == 0
    assert found.violations == []


def test_c_03_the_turns_of_a_dead_signer_are_taken_by_others_out_of_turn() -> None:
    found = world(3)
    found.crash(1)
    found.run(60.0)
    chain = found.chain(found.members[0])[1:]
    assert len(chain) > 30
    for block in chain:
        dead_turn = block.number % 3 == 1
        if dead_turn:
            assert block.header.difficulty == OUT_OF_TURN
    assert 1 not in authors(found)
    assert found.violations == []


def test_c_04_one_of_three_makes_at_most_one_more_block() -> None:
    found = world(3)
    found.run(5.5)
    before = found.members[0].head.number
    found.crash(1)
    found.crash(2)
    found.run(30.0)
    assert found.members[0].head.number <= before + 1
    found.restart(1)
    assert found.run(found.now + 20.0, reached(found, before + 6))
    assert found.violations == []


def test_c_05_four_signers_need_three() -> None:
    found = world(4)
    found.run(5.5)
    before = found.members[0].head.number
    found.crash(2)
    found.crash(3)
    found.run(60.0)
    assert found.members[0].head.number <= before + 2


def test_c_06_two_signers_halt_without_one_and_a_restarted_one_does_not_sign_twice_in_a_row() -> None:
    found = world(2)
    found.run(6.5)
    before = found.members[0].head.number
    found.crash(1)
    found.run(20.0)
    assert found.members[0].head.number <= before + 1
    found.restart(1)
    assert found.run(found.now + 20.0, reached(found, before + 5))
    made = authors(found)
    assert all(first != second for first, second in pairwise(made))


def test_c_07_two_halves_of_four_halt_and_one_branch_wins() -> None:
    found = world(4)
    found.run(5.5)
    before = max(member.head.number for member in found.members)
    found.divide((0, 0, 1, 1))
    found.run(40.0)
    assert all(member.head.number <= before + 2 for member in found.members)
    found.reunite()
    assert found.run(found.now + 40.0, lambda: reached(found, before + 8)() and len(heads(found)) == 1)
    assert found.violations == []


def test_c_08_three_of_five_go_on_and_the_two_reorganise() -> None:
    found = world(5)
    found.run(5.5)
    before = max(member.head.number for member in found.members)
    found.divide((0, 0, 0, 1, 1))
    found.run(60.0)
    assert found.members[0].head.number > before + 10
    assert found.members[3].head.number <= before + 2
    lonely = found.members[3].head
    found.reunite()
    assert found.run(found.now + 20.0, lambda: len(heads(found)) == 1)
    if lonely.number > before:
        assert lonely.hash not in [block.hash for block in found.chain(found.members[3])]
        assert found.members[3].reorgs >= 1
    assert found.violations == []


def test_c_09_two_blocks_of_equal_weight_are_settled_the_same_way_everywhere() -> None:
    settled = 0
    for seed in range(20):
        found = world(5, seed)
        found.crash(found.members[0].index)
        found.link = type(found.link)(0.4, 0.6)
        found.run(30.0)
        rivals: dict[int, set[bytes]] = {}
        for block in found.blocks.values():
            if block.hash in found.totals and block.header.difficulty == OUT_OF_TURN:
                rivals.setdefault(block.number, set()).add(block.hash)
        settled += any(len(blocks) > 1 for blocks in rivals.values())
        found.link = type(found.link)(0.001, 0.002)
        live = [member for member in found.members if member.is_up]
        found.run(found.now + 10.0)
        low = min(member.head.number for member in live) - 1
        assert len({found.chain(member)[low].hash for member in live}) == 1
        assert found.violations == []
    assert settled > 0, "no seed produced two blocks of equal weight"


def test_c_10_the_least_number_of_signers_gets_out_of_a_tie() -> None:
    """Five of eight signers are online, split into two groups.

    After the partition, one of the five may sign, so the chain continues.
    """
    for seed in range(10):
        found = world(8, seed)
        for index in (5, 6, 7):
            found.crash(index)
        found.run(8.0)
        found.divide((0, 0, 1, 1, 0, 0, 0, 0))
        found.run(40.0)
        before = max(member.head.number for member in found.members)
        found.reunite()
        assert found.run(found.now + 60.0, reached(found, before + 6)), seed
        assert found.violations == []


def test_c_11_of_two_blocks_by_one_signer_at_one_height_one_is_chosen() -> None:
    found = SimulatedCliqueNetwork(4, 5, dishonest=(0,))
    found.start()
    found.run(80.0)
    honest = found.honest
    low = min(member.head.number for member in honest) - 4
    assert low > 30
    assert len({found.chain(member)[low].hash for member in honest}) == 1
    doubled: dict[int, set[bytes]] = {}
    for block in found.blocks.values():
        if block.number and block.hash in found.totals and found.author(block) == 0:
            doubled.setdefault(block.number, set()).add(block.hash)
    assert any(len(blocks) > 1 for blocks in doubled.values()), "the liar never signed twice"
    assert found.violations == []


def test_c_14_standing_votes_vanish_at_an_epoch_and_are_cast_again_after_it() -> None:
    found = SimulatedCliqueNetwork(5, 3, epoch_length=10, listed=(0, 1, 2, 3))
    found.start()
    found.run(8.5)
    target = found.members[4]
    for index in range(3):
        found.members[index].proposals.propose(target.address, True)
    found.run(10.8)
    epoch = found.chain(found.members[0])[10]
    assert found.engine.snapshot(epoch, found).votes == ()
    assert target.address not in found.engine.members(epoch, found)
    found.run(20.5)
    assert target.address in found.engine.members(found.members[0].head, found)
    found.run(40.0)
    assert 4 in authors(found)
    assert found.violations == []


def test_c_15_turns_are_counted_with_the_smaller_set_after_a_removal() -> None:
    found = world(4)
    for index in (0, 1, 2):
        found.members[index].proposals.propose(found.members[3].address, False)
    found.run(30.5)
    chain = found.chain(found.members[0])
    gone = next(block for block in chain if len(found.engine.members(block, found)) == 3)
    for block in chain[gone.number + 1 :]:
        assert found.author(block) != 3
        if block.header.difficulty == IN_TURN:
            assert found.author(block) == block.number % 3
    assert found.violations == []


def test_c_17_a_clock_five_seconds_ahead_is_tolerated_and_fifteen_are_not() -> None:
    for skew, used in ((5.0, True), (15.0, False)):
        found = SimulatedCliqueNetwork(3, 3)
        found.members[0].skew_s = skew
        found.start()
        found.run(40.0)
        assert min(member.head.number for member in found.members[1:]) > 10
        assert (0 in authors(found, 1)[:10]) is used
        assert found.violations == []


def test_c_18_a_clock_behind_releases_late_and_others_fill_in() -> None:
    found = SimulatedCliqueNetwork(3, 3)
    found.members[0].skew_s = -4.0
    found.start()
    found.run(60.0)
    chain = found.chain(found.members[1])
    assert len(chain) > 30
    late = [block for block in chain[1:] if found.author(block) == 0]
    filled = [block for block in chain[1:] if block.number % 3 == 0 and found.author(block) != 0]
    # the clock of signer 0 is slow, so its blocks have the earliest timestamp that the rules allow
    assert all(block.timestamp == chain[block.number - 1].timestamp + 1 for block in late)
    assert filled
    assert {block.header.difficulty for block in filled} == {OUT_OF_TURN}
    assert found.violations == []


def test_c_23_turns_follow_addresses_whatever_the_order_in_genesis() -> None:
    sorted_list = SimulatedCliqueNetwork(3, 3, listed=(0, 1, 2))
    shuffled = SimulatedCliqueNetwork(3, 3, listed=(2, 0, 1))
    for found in (sorted_list, shuffled):
        found.start()
        found.run(9.5)
        assert authors(found) == [number % 3 for number in range(1, 10)]


def test_c_19_a_late_joiner_validates_everything_and_knows_the_same_signers() -> None:
    """A node that joins after several epochs with changing signers computes the same signers. `C19_BLOCKS=100000` runs
    the full scenario (a minute).
    """
    blocks = int(os.environ.get("C19_BLOCKS", "4000"))
    story = CliqueStory("ABCD", epoch=500)
    listed: list[tuple[bytes, ...]] = []
    rng = Random(19)
    for number in range(1, blocks + 1):
        snapshot = story.engine.snapshot(story.chain.head, story.chain)
        signers = [payload for payload in "ABCDEFG" if snapshot.may_sign(address_of(payload), number)]
        author = min(signers, key=lambda payload: (snapshot.in_turn(number) != address_of(payload), rng.random()))
        token = author
        if number % 500 and rng.random() < 0.1:
            target = rng.choice("EFG")
            token += ("-" if address_of(target) in snapshot.signers else "+") + target
        story.chain.extend(story.sealed(token))
        listed.append(story.engine.members(story.chain.head, story.chain))
    assert len(set(listed)) > 5, "nobody came or went"
    joiner = CliqueEngine(story.spec)
    headers = sorted(story.chain.headers.values(), key=lambda header: header.number)
    for parent, header in pairwise(headers):
        joiner.verify(header, parent, story.chain, FAR)
        assert joiner.members(header, story.chain) == listed[header.number - 1]


@pytest.mark.parametrize("seed", range(10))
def test_c_20_clients_that_vote_and_count_differently_agree_at_every_block(seed: int) -> None:
    """Three signers vote by the rules of three clients. The test applies both counting rules of these clients at every
    block.

    Ophion votes once. geth repeats a standing vote in every block and picks among its proposals at random. Besu votes
    once per epoch, in turn. geth counts votes like this engine, and Besu counts them like IBFT 2.0 (consensus.md 1.6).
    Chains with only meaningful votes must give the same result. The integration tests import such a chain into a real
    geth.
    """
    rng = Random(seed)
    story = CliqueStory("ABC", epoch=20)
    besu = Tally.of(map(address_of, "ABC"))
    voted: set[tuple[str, str]] = set()
    sets = set()
    for number in range(1, 101):
        snapshot = story.engine.snapshot(story.chain.head, story.chain)
        if number % 20 == 1:
            voted.clear()
        live = [payload for payload in "ABCDEF" if snapshot.may_sign(address_of(payload), number)]
        author = rng.choice(live)
        wanted = [
            (target, adds)
            for target, adds in (("D", number % 40 < 30), ("E", number % 30 < 20), ("F", number > 50))
            if snapshot.is_meaningful(Vote(address_of(target), adds))
        ]
        repeats = author in "BE"
        choices = [entry for entry in wanted if repeats or (author, entry[0]) not in voted]
        token = author
        if choices and number % 20:
            target, adds = rng.choice(choices) if repeats else choices[0]
            voted.add((author, target))
            token += ("+" if adds else "-") + target
            besu = besu.apply(address_of(author), Vote(address_of(target), adds))
        header = story.chain.extend(story.sealed(token))
        if number % 20 == 0:
            besu = Tally.of(story.engine.members(header, story.chain))
        assert besu.validators == story.engine.members(header, story.chain), (number, token)
        sets.add(besu.validators)
    assert len(sets) > 3

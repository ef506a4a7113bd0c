"""Scenarios of consensus.md 6.2 and 6.3 with whole networks. Scenarios that concern both protocols run in both."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations

import pytest

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.messages import Commit, RoundChange
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.status import Phase, status_of
from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.fault_plan import LinkQuality, Misconduct
from ophion.testing.simulation.message_delivery import Payload
from ophion.testing.simulation.network import SimulatedNetwork
from ophion.testing.simulation.trace import Trace

IBFT2, QBFT = Ibft2(), Qbft()
both = pytest.mark.parametrize("rules", [IBFT2, QBFT], ids=["ibft2", "qbft"])
PATIENT = RoundTiming(2.0, 4.0, 64.0)


def world(
    rules: ProtocolRules,
    validators: int = 4,
    timing: RoundTiming = PATIENT,
    misconduct: dict[int, tuple[Misconduct, ...]] | None = None,
    faulty: tuple[int, ...] = (),
    standby: int = 0,
    epoch_length: int = 30_000,
) -> SimulatedNetwork:
    network = NetworkSettings(rules, validators, timing, standby=standby, epoch_length=epoch_length)
    found = SimulatedNetwork(network, 7, misconduct, faulty)
    found.start()
    return found


def safe(found: SimulatedNetwork) -> None:
    assert found.checker.violations == []


def reached(found: SimulatedNetwork, height: int, members: tuple[int, ...] | None = None) -> Callable[[], bool]:
    chosen = found.members if members is None else [found.members[index] for index in members]
    return lambda: all(member.height >= height for member in chosen)


def rounds(found: SimulatedNetwork) -> list[int]:
    """Return the round in which each block was decided."""
    return [found.checker.finals[height].round for height in sorted(found.checker.finals)]


# --- without faults -----------------------------------------------------------------------------


@both
def test_i_01_a_single_validator_makes_a_block_each_period_without_messages(rules: ProtocolRules) -> None:
    found = SimulatedNetwork(NetworkSettings(rules, 1, PATIENT), trace=Trace(1))
    found.start()
    found.run(20.5)
    assert found.heights() == [10]
    assert [block.timestamp for block in found.members[0].chain[1:]] == list(range(2, 21, 2))
    assert found.trace is not None
    assert all("Proposal" not in row.cells.values() for row in found.trace.rows)
    safe(found)


@both
def test_i_02_four_validators_make_a_block_per_period_in_round_0_and_take_turns(rules: ProtocolRules) -> None:
    found = world(rules)
    found.run(20.5)
    assert found.heights() == [10] * 4
    chain = found.members[0].chain[1:]
    assert rounds(found) == [0] * 10
    assert all(len(block.seals) >= 3 for block in chain)
    assert [block.builder for block in chain[:8]] == [member.address for member in found.members] * 2
    safe(found)


# --- validators that stop -----------------------------------------------------------------------


@both
def test_i_03_one_crashed_validator_costs_a_timeout_on_its_turns(rules: ProtocolRules) -> None:
    """If validators do not skip offline proposers, each turn of a crashed validator costs a timeout, as in other
    clients.
    """
    found = SimulatedNetwork(NetworkSettings(rules, 4, PATIENT, passes_over=False), trace=Trace(4))
    found.start()
    found.crash(2)
    found.run(60.0)
    live = [found.members[index] for index in (0, 1, 3)]
    chain = live[0].chain[1:]
    assert len(chain) > 15
    for before, block in pairwise(chain):
        its_turn = before.builder == found.members[1].address
        assert block.round == (1 if its_turn else 0)
        if its_turn:
            assert block.builder == found.members[3].address
            delay = block.timestamp - before.timestamp
            assert delay in ((4, 5) if rules is IBFT2 else (6, 7))
    safe(found)


@both
def test_i_04_two_crashed_of_four_halt_with_growing_timeouts_until_one_returns(rules: ProtocolRules) -> None:
    found = world(rules)
    found.run(5.0)
    height = found.members[0].height
    found.crash(2)
    found.crash(3)
    found.run(7.0)  # wait until the next block is due, so that round 0 has begun in both protocols
    lengths = []
    for _ in range(5):
        state = found.members[0].machine
        assert state is not None
        assert state.height is not None
        expires = state.height.timers.expires_at
        assert expires is not None
        found.run(expires + 0.1)
        assert state.height.timers.expires_at is not None
        lengths.append(round(state.height.timers.expires_at - expires))
    assert lengths == [8, 16, 32, 64, 64]
    assert found.members[0].height <= height + 1
    halted = max(found.heights())
    state = found.members[0].machine
    assert state is not None
    verdict = status_of(state, found.now)
    assert verdict.is_quorum_reachable is False
    assert verdict.phase is Phase.WAITING_FOR_ROUND_CHANGES
    found.restart(2)
    assert found.run(found.now + 3 * 64.0, reached(found, halted + 3, (0, 1, 2)))
    safe(found)


@both
@pytest.mark.parametrize("keeps_disk", [True, False])
def test_i_05_a_restart_of_all_after_a_long_stall_brings_a_block_soon(rules: ProtocolRules, keeps_disk: bool) -> None:
    """Validators that keep their disks continue in the round that they had requested. Without disks, all start in round
    0.

    With disks, a restart at round 0 would contradict stored votes: see `ophion.consensus.bft.durable_votes`.
    """
    found = world(rules, faulty=() if keeps_disk else (0, 1, 2, 3))
    found.run(5.0)
    found.divide((0, 0, 1, 1))
    found.run(300.0)
    halted = max(found.heights())
    machine = found.members[0].machine
    assert machine is not None
    assert machine.height is not None
    assert machine.height.current >= 4
    for member in found.members:
        found.crash(member.index)
    found.run(found.now + 1.0)
    found.reunite()
    for member in found.members:
        found.restart(member.index, keeps_disk)
    started = found.now
    assert found.run(started + 20.0, reached(found, halted + 1 if keeps_disk else 1))
    assert found.now - started < (1.0 if keeps_disk else 3.0)
    safe(found)


@both
def test_i_06_a_proposer_that_crashes_after_its_proposal_gets_its_block_decided_by_the_others(
    rules: ProtocolRules,
) -> None:
    found = world(rules)
    found.delivery.filter = lambda _from, _to, payload: not (isinstance(payload, Commit) and payload.round == 0)
    found.run(2.5)
    first = found.members[1].machine
    assert first is not None
    assert first.height is not None
    prepared = first.height.durable_votes.prepared
    assert prepared is not None
    found.crash(0)
    assert found.run(12.0, reached(found, 1, (1, 2, 3)))
    block = found.checker.finals[1]
    assert block.hash == prepared.block.hash
    assert block.round == 1
    assert block.builder == found.members[0].address
    safe(found)


def locked_and_restarted(rules: ProtocolRules, keeps_disk: bool) -> tuple[SimulatedNetwork, bytes]:
    """Play scenario I-07: A, B and C commit; only A decides and is disconnected; B and C restart; D has received no
    message.
    """
    found = world(rules, faulty=() if keeps_disk else (1, 2))
    a, d = 0, 3

    def story(sender: int, receiver: int, payload: Payload) -> bool:
        if d in (sender, receiver) or not hasattr(payload, "author"):
            return False
        return not isinstance(payload, Commit) or receiver == a

    found.delivery.filter = story
    found.run(2.5)
    assert found.heights() == [1, 0, 0, 0]
    decided = found.members[a].head.hash
    found.divide((1, 0, 0, 0))
    found.delivery.filter = None
    for index in (1, 2):
        found.crash(index)
        found.restart(index, keeps_disk)
    found.run(40.0, reached(found, 1, (1, 2, 3)))
    return found, decided


@both
def test_i_07_a_locked_block_survives_the_restart_of_those_who_locked_it(rules: ProtocolRules) -> None:
    found, decided = locked_and_restarted(rules, keeps_disk=True)
    assert found.members[3].head.hash == decided
    safe(found)
    found.reunite()
    assert found.run(found.now + 30.0, reached(found, 4))
    safe(found)


@both
def test_i_07_without_memory_the_same_story_ends_in_a_fork(rules: ProtocolRules) -> None:
    """Without durable votes the network forks, so validators store their votes."""
    found, decided = locked_and_restarted(rules, keeps_disk=False)
    assert found.members[3].height == 1
    assert found.members[3].head.hash != decided


# --- partitions ---------------------------------------------------------------------------------


@both
def test_i_08_halves_halt_and_go_on_together(rules: ProtocolRules) -> None:
    found = world(rules)
    found.run(7.0)
    found.divide((0, 0, 1, 1))
    found.run(60.0)
    halted = max(found.heights())
    assert halted <= 4
    found.reunite()
    assert found.run(found.now + 130.0, reached(found, halted + 2))
    safe(found)


@both
def test_i_09_a_majority_goes_on_and_the_one_cut_off_catches_up_and_rejoins(rules: ProtocolRules) -> None:
    found = world(rules)
    found.run(3.0)
    found.divide((0, 0, 0, 1))
    found.run(60.0)
    majority, minority = found.members[0].height, found.members[3].height
    assert majority > minority + 8
    found.reunite()
    assert found.run(found.now + 1.0, reached(found, majority))
    start = found.members[3].height
    assert found.run(found.now + 40.0, reached(found, start + 6))
    sealed = [found.members[3].address in block.sealers for block in found.members[0].chain[start + 2 :]]
    assert any(sealed)
    safe(found)


@both
def test_i_10_two_proposals_in_one_round_never_both_get_through(rules: ProtocolRules) -> None:
    for seed in range(8):
        network = NetworkSettings(rules, 4, PATIENT)
        found = SimulatedNetwork(network, seed, {0: (Misconduct.DOUBLE_PROPOSAL, Misconduct.EQUIVOCATION)})
        found.start()
        assert found.run(120.0, reached(found, 12, (1, 2, 3)))
        safe(found)


# --- messages and clocks ------------------------------------------------------------------------


@both
def test_i_14_messages_slower_than_the_timeout_cost_rounds_but_not_the_chain(rules: ProtocolRules) -> None:
    found = world(rules, timing=RoundTiming(1.0, 1.5, 64.0))
    found.delivery.link = LinkQuality(1.4, 1.6)
    assert found.run(120.0, reached(found, 3))
    assert max(rounds(found)) >= 1
    safe(found)


@both
def test_i_15_doubled_and_reordered_messages_change_nothing(rules: ProtocolRules) -> None:
    found = world(rules)
    found.delivery.link = LinkQuality(0.001, 0.4, duplication=0.5)
    found.run(41.0)
    assert min(found.heights()) >= 19
    assert set(rounds(found)) == {0}
    safe(found)


@both
def test_i_17_a_fast_clock_loses_its_turns_and_a_slow_one_does_not(rules: ProtocolRules) -> None:
    for skew, loses in ((2.0, True), (-2.0, False)):
        found = SimulatedNetwork(NetworkSettings(rules, 4, RoundTiming(2.0, 6.0, 64.0)), 7)
        found.members[0].skew_s = skew
        found.start()
        found.run(80.0)
        chain = found.members[1].chain[1:]
        own = [block for block in chain if block.builder == found.members[0].address and block.round == 0]
        assert len(chain) > 10
        assert bool(own) is not loses
        safe(found)


def test_i_18_a_timeout_below_the_period_makes_every_block_need_a_round_change() -> None:
    timing = RoundTiming(4.0, 2.0, 64.0)
    assert timing.warnings(starts_on_block_timer=False)
    found = world(IBFT2, timing=timing)
    found.run(100.0)
    assert min(found.heights()) > 5
    assert min(rounds(found)) >= 1
    safe(found)


# --- changes of the validator set ---------------------------------------------------------------


@both
def test_i_19_a_fifth_validator_is_voted_in_and_takes_part(rules: ProtocolRules) -> None:
    found = world(rules, standby=1)
    new = found.members[4]
    for index in range(3):
        found.members[index].proposals.propose(new.address, True)
    found.run(60.0)
    chain = found.members[0].chain
    added_at = next(block.height for block in chain if new.address in block.tally.validators)
    assert added_at == 3
    assert all(len(block.seals) >= 4 for block in chain[added_at + 1 :])
    assert any(block.builder == new.address for block in chain)
    assert any(new.address in block.sealers for block in chain)
    assert len(set(found.heights())) == 1
    safe(found)


@both
def test_i_20_a_validator_voted_out_stops_and_the_turns_close_over_it(rules: ProtocolRules) -> None:
    found = world(rules)
    gone = found.members[2]
    for index in (0, 1, 3):
        found.members[index].proposals.propose(gone.address, False)
    found.run(40.0)
    chain = found.members[0].chain
    removed = next(block.height for block in chain if gone.address not in block.tally.validators)
    assert all(block.builder != gone.address for block in chain[removed + 1 :])
    assert set(rounds(found)) == {0}
    assert gone.height >= found.members[0].height - 1
    safe(found)


@both
def test_i_21_half_collected_votes_do_not_survive_an_epoch(rules: ProtocolRules) -> None:
    found = world(rules, standby=1, epoch_length=3)
    new = found.members[4]
    for index in (0, 1, 2):
        found.members[index].proposals.propose(new.address, True)
    found.run(6.5)
    assert found.members[0].height == 3
    assert len(found.members[0].head.tally.validators) == 4
    assert found.members[0].head.tally.adds == {}
    found.run(60.0)
    safe(found)


@both
def test_i_22_a_late_joiner_synchronises_and_then_takes_part(rules: ProtocolRules) -> None:
    found = world(rules)
    found.crash(3)
    found.run(60.0)
    behind = found.members[0].height
    found.restart(3)
    assert found.run(found.now + 1.0, reached(found, behind))
    # the member has lost its votes, so it sends no votes until a new block is made
    machine = found.members[3].machine
    assert machine is not None
    assert machine.skips_height
    assert found.run(found.now + 14.0, lambda: not machine.skips_height)
    joined = found.members[3].height
    found.run(found.now + 24.5)
    recent = found.members[0].chain[joined + 3 :]
    assert len(recent) >= 7
    assert {block.round for block in recent} == {0}
    assert any(block.builder == found.members[3].address for block in recent)
    safe(found)


@both
def test_a_validator_that_lost_its_disk_does_not_vote_at_the_height_of_its_restart(rules: ProtocolRules) -> None:
    found = world(rules, faulty=(2,))
    found.checker.forgetful = frozenset({2})
    found.run(9.0)
    # validator 2 votes, and then loses its disk before the height is decided
    found.delivery.filter = lambda _sender, _receiver, payload: not isinstance(payload, Commit)
    found.run(13.0)
    stuck = found.members[2].height
    assert stuck == max(found.heights())
    found.crash(2)
    found.delivery.filter = None
    found.restart(2, keeps_disk=False)
    machine = found.members[2].machine
    assert found.run(found.now + 30.0, reached(found, stuck + 1))
    assert machine is not None
    assert machine.skips_height
    sealers = found.members[0].chain[stuck + 1].sealers
    assert found.members[2].address not in sealers
    assert found.run(found.now + 40.0, lambda: found.members[2].address in found.members[0].head.sealers)
    safe(found)


@both
def test_any_number_of_restarts_in_any_order_ends_in_progress(rules: ProtocolRules) -> None:
    """Every subset of validators stops, at different moments of a height, and restarts in every order. Then blocks
    continue.
    """
    orders = [order for count in range(1, 5) for order in permutations(range(4), count)]
    for number, order in enumerate(orders):
        found = world(rules)
        found.run(5.0 + 0.05 * number)
        for index in order:
            found.crash(index)
        found.run(found.now + 2.0)
        for index in order:
            found.run(found.now + 0.3)
            found.restart(index)
        goal = max(found.heights()) + 1
        assert found.run(found.now + 3 * PATIENT.request_timeout_s, reached(found, goal)), order
        safe(found)


@both
def test_two_halves_of_a_network_go_on_as_soon_as_they_meet(rules: ProtocolRules) -> None:
    """After a long partition with long rounds, each half repeats its last messages to the other half. So blocks
    continue at once.
    """
    found = world(rules)
    found.run(5.0)
    found.divide((0, 0, 1, 1))
    found.run(105.0)
    found.reunite()
    goal = max(found.heights()) + 1
    assert found.run(found.now + PATIENT.request_timeout_s, reached(found, goal))
    safe(found)


@both
def test_a_network_grows_from_one_validator_to_two_by_vote_and_shrinks_again(rules: ProtocolRules) -> None:
    """With two validators, a quorum needs both. The second validator was a follower, or was offline during the vote."""
    for is_there in (True, False):
        found = world(rules, validators=1, standby=1)
        alone, second = found.members
        if not is_there:
            found.crash(1)
        found.run(21.0)
        alone.proposals.propose(second.address, True)
        assert found.run(found.now + 10.0, lambda: len(alone.head.tally.validators) == 2)  # noqa: B023
        if not is_there:
            found.run(found.now + 10.0)
            found.restart(1)
        goal = alone.height + 4
        assert found.run(found.now + 40.0, reached(found, goal)), is_there
        assert {block.builder for block in alone.chain[goal - 2 :]} == {alone.address, second.address}
        for member in found.members:
            member.proposals.discard(second.address)
            member.proposals.propose(second.address, False)
        assert found.run(found.now + 20.0, lambda: len(alone.head.tally.validators) == 1)  # noqa: B023
        goal = alone.height + 3
        assert found.run(found.now + 20.0, reached(found, goal)), is_there
        assert alone.head.builder == alone.address
        safe(found)


@both
def test_i_23_consensus_does_not_pass_through_a_node_that_is_no_validator(rules: ProtocolRules) -> None:
    found = SimulatedNetwork(NetworkSettings(rules, 2, PATIENT, standby=1), 7)
    found.delivery.missing_links = {frozenset((0, 1))}
    found.start()
    found.run(60.0)
    assert max(found.heights()) == 0
    found.delivery.missing_links = set()
    found.introduce_all()
    assert found.run(found.now + 130.0, reached(found, 3))
    safe(found)


# --- QBFT ---------------------------------------------------------------------------------------


def test_q_02_round_1_begins_after_period_and_timeout() -> None:
    found = world(QBFT, timing=RoundTiming(5.0, 2.0, 64.0))
    found.crash(0)
    found.run(6.9)
    asked: list[float] = []

    def note(_from: int, _to: int, payload: Payload) -> bool:
        if isinstance(payload, RoundChange):
            asked.append(found.now)
        return True

    found.delivery.filter = note
    found.run(9.0)
    assert round(min(asked), 3) == 7.0
    safe(found)


def test_q_08_empty_blocks_come_every_ten_seconds_and_full_ones_every_second() -> None:
    found = world(QBFT, timing=RoundTiming(1.0, 20.0, 64.0, empty_period_s=10.0))
    found.driver.has_load = False
    found.run(45.0)
    times = [block.timestamp for block in found.members[0].chain[1:]]
    assert times == [10, 20, 30, 40]
    found.driver.has_load = True
    found.run(61.0)
    assert found.members[0].height >= 18
    assert set(rounds(found)) == {0}
    safe(found)


@both
def test_blocks_come_every_200_milliseconds(rules: ProtocolRules) -> None:
    found = world(rules, timing=RoundTiming(0.2, 1.0, 16.0))
    found.run(20.0)
    assert min(found.heights()) >= 80
    assert set(rounds(found)) == {0}
    times = [block.timestamp for block in found.members[0].chain[1:]]
    assert times == sorted(times)
    safe(found)


def test_q_08_an_empty_block_period_may_exceed_the_round_timeout() -> None:
    found = world(QBFT, timing=RoundTiming(0.2, 1.0, 16.0, empty_period_s=10.0))
    found.driver.has_load = False
    found.run(45.0)
    assert [block.timestamp for block in found.members[0].chain[1:]] == [10, 20, 30, 40]
    found.driver.has_load = True
    found.run(50.0)
    assert found.members[0].height >= 20
    assert set(rounds(found)) == {0}
    safe(found)


# --- kill and restart ---------------------------------------------------------------------------


@both
def test_x_04_a_validator_killed_at_any_moment_never_signs_two_things_in_one_round(rules: ProtocolRules) -> None:
    """A validator is killed at any moment. The checker compares its messages after the restart with its messages before
    the kill.
    """
    found = world(rules, timing=RoundTiming(1.0, 1.5, 6.0))
    for step in range(60):
        index = step % 4
        found.at(1.0 + 0.37 * step, lambda index=index: found.begin_outage(index))  # type: ignore[misc]
        found.at(1.6 + 0.37 * step, lambda index=index: found.restart(index))  # type: ignore[misc]
    found.run(30.0)
    assert min(found.heights()) >= 2
    safe(found)

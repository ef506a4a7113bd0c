"""Tests one height: rounds, votes, timers and refusals (scenarios I-06, I-10 to I-15, Q-01 to Q-05, Q-08)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import (
    BlockTimer,
    BuildProposal,
    CancelTimer,
    CheckProposal,
    Connected,
    Disconnected,
    Head,
    ImportBlock,
    Multicast,
    ProposalChecked,
    RelayMessage,
    ResendMessage,
    StoreVotes,
    TaskFailed,
    TimerKind,
)
from ophion.consensus.bft.messages import Commit, Prepare, Proposal, RoundChange
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.round import MAX_ROUND
from ophion.consensus.bft.round_timing import RoundTiming
from tests.unit.consensus.bft.puppets import IBFT2, PROTOCOLS, QBFT, Stage

both = pytest.mark.parametrize("rules", PROTOCOLS, ids=lambda rules: rules.name)


def votes(stage: Stage, proposal: Proposal, by: tuple[int, ...]) -> None:
    """Deliver prepares of these validators one by one."""
    for index in by:
        stage.hear(stage.hands[index].prepare(1, proposal.round, proposal.block.digest))


def commits(stage: Stage, proposal: Proposal, by: tuple[int, ...]) -> None:
    digest = proposal.block.digest
    for index in by:
        stage.hear(stage.hands[index].commit(1, proposal.round, digest, digest))


# --- without faults -----------------------------------------------------------------------------


@both
def test_a_follower_prepares_commits_and_imports(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.accept(proposal)
    assert [message.digest for message in stage.said(Prepare) if isinstance(message, Prepare)] == [
        proposal.block.digest
    ]
    assert not stage.said(Commit)
    votes(stage, proposal, (1, 2) if rules is QBFT else (1,))
    assert len(stage.said(Commit)) == 1
    commits(stage, proposal, (0, 1))
    (decision,) = stage.done(ImportBlock)
    assert decision.block == proposal.block
    assert decision.round == 0
    assert [rules.name, len(decision.seals)] == [rules.name, 3]


@both
def test_the_proposer_proposes_when_the_block_is_due(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=0)
    stage.start_round_0()
    (order,) = stage.done(BuildProposal)
    assert (order.height, order.round, order.timestamp) == (1, 0, 1)
    block = stage.block(0)
    stage.built(block)
    (said,) = stage.said(Proposal)
    assert isinstance(said, Proposal)
    assert said.block == block
    assert bool(stage.said(Prepare)) is rules.proposer_prepares


def test_a_lone_validator_decides_at_once_and_sends_nothing() -> None:
    for rules in PROTOCOLS:
        stage = Stage(rules, me=0, validators=1)
        stage.start_round_0()
        stage.built(stage.block(0))
        (decision,) = stage.done(ImportBlock)
        assert len(decision.seals) == 1
        assert not stage.done(Multicast)
        assert not stage.done(StoreVotes)


@both
def test_a_vote_is_stored_before_it_is_sent(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.accept(proposal)
    kinds = [type(effect) for effect in stage.effects if isinstance(effect, StoreVotes | Multicast)]
    assert kinds == [StoreVotes, Multicast]
    assert stage.done(StoreVotes)[0].durable_votes.vote == proposal.block.digest
    votes(stage, proposal, (1, 2) if rules is QBFT else (1,))
    kinds = [type(effect) for effect in stage.effects if isinstance(effect, StoreVotes | Multicast)]
    assert kinds == [StoreVotes, Multicast]
    prepared = stage.done(StoreVotes)[0].durable_votes.prepared
    assert prepared is not None
    assert prepared.block == proposal.block


@both
def test_an_own_commit_counts_only_once_a_quorum_has_prepared(rules: ProtocolRules) -> None:
    """Two commits of other validators are not a quorum of four. The own commit counts only after a prepared certificate
    exists.
    """
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.accept(proposal)
    commits(stage, proposal, (0, 1))
    assert not stage.done(ImportBlock)
    commits(stage, proposal, (2,))
    (decision,) = stage.done(ImportBlock)
    assert len(decision.seals) == 3, "three commits of others are enough, without an own one"


def test_ibft2_starts_its_round_with_the_head_and_qbft_with_the_block_time() -> None:
    ibft2 = Stage(IBFT2, me=3)
    ibft2.start()
    assert ibft2.timer(TimerKind.ROUND) == 4.0
    assert ibft2.timer(TimerKind.BLOCK) is None
    qbft = Stage(QBFT, me=3)
    qbft.start()
    assert qbft.timer(TimerKind.ROUND) is None
    assert qbft.timer(TimerKind.BLOCK) == 1.0
    qbft.now = 1.0
    qbft.fire(TimerKind.BLOCK)
    assert qbft.timer(TimerKind.ROUND) == 5.0


# --- orders of arrival --------------------------------------------------------------------------


@both
def test_i_15_commits_before_prepares_before_the_proposal_are_used(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    commits(stage, proposal, (0, 1))
    votes(stage, proposal, (1, 2))
    stage.accept(proposal)
    assert len(stage.said(Commit)) == 1
    assert len(stage.done(ImportBlock)) == 1


@both
def test_i_15_votes_count_once_per_author(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.accept(proposal)
    vote = stage.hands[1].commit(1, 0, proposal.block.digest, proposal.block.digest)
    for number in range(4):
        stage.hear(replace(vote, fingerprint=bytes((number,))))
        assert not stage.done(ImportBlock)


@both
def test_votes_of_a_later_round_wait_for_it(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    block = stage.block(1, 1)
    proposal = stage.justified(1, {0: None, 1: None, 2: None}, block)
    votes(stage, proposal, (2,))
    commits(stage, proposal, (0, 1))
    stage.accept(proposal)
    assert stage.machine.height is not None
    assert stage.machine.height.current == 1
    if rules is QBFT:
        votes(stage, proposal, (1,))
    assert len(stage.done(ImportBlock)) == 1


def test_q_01_a_proposal_before_the_block_timer_starts_the_round_early() -> None:
    stage = Stage(QBFT, me=3)
    stage.start()
    stage.now = 0.9
    stage.accept(stage.proposal())
    assert stage.timer(TimerKind.ROUND) == 0.9 + 4.0
    assert len(stage.said(Prepare)) == 1
    stage.now = 1.0
    assert stage.fire(TimerKind.BLOCK) == []


def test_q_02_round_1_comes_after_period_and_time_out() -> None:
    stage = Stage(QBFT, me=3, timing=RoundTiming(5.0, 2.0))
    stage.start()
    assert stage.timer(TimerKind.BLOCK) == 5.0
    stage.now = 5.0
    stage.fire(TimerKind.BLOCK)
    assert stage.timer(TimerKind.ROUND) == 7.0
    stage.fire(TimerKind.ROUND)
    assert [message.round for message in stage.said(RoundChange)] == [1]


# --- refusals -----------------------------------------------------------------------------------


@both
def test_i_10_only_the_first_proposal_of_a_round_counts(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    stage.accept(stage.proposal())
    assert stage.hear(stage.proposal(nonce=1)) == []  # the node neither checks nor relays the second proposal
    assert not stage.done(CheckProposal)


@both
def test_i_11_a_block_that_fails_its_check_gets_no_prepare_and_ends_in_a_round_change(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.hear(proposal)
    stage.checked(proposal, "wrong state root")
    assert stage.effects == []
    stage.hear(stage.proposal(nonce=1))
    assert not stage.done(CheckProposal)
    stage.fire(TimerKind.ROUND)
    (change,) = stage.said(RoundChange)
    assert isinstance(change, RoundChange)
    assert change.signed.claim is None


@both
def test_i_12_proposal_of_another_validator_is_dropped(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    stage.hear(stage.hands[1].proposal(1, 0, stage.block(1), None))
    assert not stage.done(CheckProposal)


def test_i_12_prepare_by_the_proposer_counts_in_qbft_only() -> None:
    for rules, counts in ((IBFT2, False), (QBFT, True)):
        stage = Stage(rules, me=3)
        stage.start_round_0()
        proposal = stage.proposal()
        stage.accept(proposal)
        votes(stage, proposal, (0, 0))
        assert stage.machine.height is not None
        assert (stage.hands[0].address in stage.machine.height.round.prepares) is counts


@both
def test_i_12_commit_with_a_foreign_seal_is_dropped(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    digest = proposal.block.digest
    early = replace(stage.hands[2].commit(1, 0, digest, digest), seal=stage.hands[1].commit(1, 0, digest, digest).seal)
    stage.hear(early)
    stage.accept(proposal)
    votes(stage, proposal, (1, 2))
    stage.hear(replace(early, author=stage.hands[1].address, seal=b"", fingerprint=b"other"))
    commits(stage, proposal, (0,))
    assert not stage.done(ImportBlock)
    commits(stage, proposal, (1,))
    (decision,) = stage.done(ImportBlock)
    assert len(decision.seals) == 3


@both
def test_i_12_round_changes_with_bad_proofs_are_dropped(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    height = stage.machine.height
    assert height is not None
    block = stage.block(0)
    enough = (1, 2) if rules is IBFT2 else (0, 1, 2)
    good = stage.prepared(block, enough)
    bad = {
        "too few prepares": replace(good, prepares=good.prepares[:-1]),
        "two prepares of one author": replace(good, prepares=(*good.prepares[:-1], good.prepares[0])),
        "prepares of a stranger": replace(
            good, prepares=(*good.prepares[:-1], replace(good.prepares[0], author=bytes(20)))
        ),
        "prepares of another round": replace(good, prepares=(*good.prepares[:-1], replace(good.prepares[0], round=1))),
        "another block": replace(good, block=stage.block(0, nonce=5)),
    }
    if rules is IBFT2:
        bad["a prepare of the proposer"] = stage.prepared(block, (0, 1))
        other = stage.hands[1].proposal(1, 0, block, None).signed
        bad["a proposal of somebody else"] = replace(good, proposal=other)
    for name, proof in bad.items():
        message = stage.hands[1].round_change(1, 1, proof)
        if name == "another block" and rules is IBFT2:
            claim = stage.hands[1].round_change(1, 1, good).signed
            message = replace(message, signed=claim)
        elif name == "another block":
            message = replace(message, signed=stage.hands[1].round_change(1, 1, good).signed)
        stage.hear(replace(message, fingerprint=name.encode()))
        assert len(height.round_changes) == 0, name
    not_earlier = stage.hands[1].round_change(1, 1, stage.prepared(stage.block(1, 1), (0, 2, 3)))
    without_block = replace(stage.hands[1].round_change(1, 1, good), block=None, fingerprint=b"without block")
    without_claim = replace(stage.hands[1].round_change(1, 1, None), block=block, fingerprint=b"without claim")
    too_far = stage.hands[1].round_change(1, MAX_ROUND + 1, None)
    round_0 = replace(stage.hands[1].round_change(1, 0, None), fingerprint=b"round 0")
    for message in (not_earlier, without_block, without_claim, too_far, round_0):
        stage.hear(message)
        assert len(height.round_changes) == 0
    stage.hear(stage.hands[1].round_change(1, 1, good))
    assert len(height.round_changes) == 1


@both
def test_i_13_later_proposals_need_a_certificate_of_a_quorum_that_names_the_prepared_block(
    rules: ProtocolRules,
) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    prepared = stage.prepared(stage.block(0), (1, 2) if rules is IBFT2 else (0, 1, 2))
    fresh = stage.block(1, 1)
    good = stage.justified(1, {0: None, 1: prepared, 2: None}, stage.hands[0].with_round(stage.block(0), 1))
    refused = [
        stage.hands[1].proposal(1, 1, fresh, None),
        stage.justified(1, {0: None, 1: None}, fresh),
        stage.justified(1, {0: None, 1: prepared, 2: None}, fresh),
        replace(good, round_changes=(good.round_changes or ())[:2]),
        replace(good, round_changes=((good.round_changes or ())[0],) * 3),
        replace(
            good,
            round_changes=(*(good.round_changes or ())[:2], stage.hands[2].round_change(1, 2, None).signed),
        ),
        replace(
            good,
            round_changes=(
                *(good.round_changes or ())[:2],
                replace(stage.hands[2].round_change(1, 1, None).signed, author=bytes(20)),
            ),
        ),
    ]
    for number, proposal in enumerate(refused):
        stage.hear(replace(proposal, known_as=bytes((number,))))
        assert not stage.done(CheckProposal), number
    stage.hear(good)
    assert len(stage.done(CheckProposal)) == 1


def test_ibft2_refuses_a_certificate_in_round_0_and_a_block_of_another_round() -> None:
    stage = Stage(IBFT2, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    for number, bad in enumerate(
        (
            replace(proposal, round_changes=()),
            replace(proposal, block=stage.block(0, 1)),
            replace(proposal, signed=replace(proposal.signed, digest=bytes(32))),
        )
    ):
        stage.hear(replace(bad, known_as=bytes((number,))))
        assert not stage.done(CheckProposal)


def test_qbft_refuses_a_justification_in_round_0() -> None:
    stage = Stage(QBFT, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.hear(replace(proposal, prepares=(stage.hands[1].prepare(1, 0, bytes(32)),)))
    assert not stage.done(CheckProposal)


def test_q_04_round_changes_that_contradict_each_other_justify_nothing() -> None:
    stage = Stage(QBFT, me=3)
    stage.start_round_0()
    first = stage.prepared(stage.block(0), (0, 1, 2))
    second = stage.prepared(stage.block(0, nonce=9), (0, 1, 2))
    block = stage.hands[0].with_round(stage.block(0), 1)
    stage.hear(stage.justified(1, {0: first, 1: second, 2: None}, block))
    assert not stage.done(CheckProposal)


def test_q_05_a_new_block_in_a_later_round_is_the_proposers_own() -> None:
    stage = Stage(QBFT, me=3)
    stage.start_round_0()
    stage.hear(stage.justified(1, {0: None, 1: None, 2: None}, stage.block(0, 1)))
    assert not stage.done(CheckProposal)
    stage.hear(stage.justified(1, {0: None, 1: None, 2: None}, stage.block(1, 1)))
    assert len(stage.done(CheckProposal)) == 1


# --- changing rounds ----------------------------------------------------------------------------


@both
def test_time_outs_double_up_to_the_cap(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3, timing=RoundTiming(1.0, 2.0, 16.0))
    stage.start_round_0()
    lengths = []
    for number in range(1, 6):
        for index in range(3):
            stage.hear(stage.hands[index].round_change(1, number, None))
        height = stage.machine.height
        assert height is not None
        assert height.current == number
        assert height.timers.expires_at is not None
        lengths.append(height.timers.expires_at - stage.now)
        stage.now = height.timers.expires_at
    assert lengths == [4.0, 8.0, 16.0, 16.0, 16.0]


@both
def test_i_06_what_was_prepared_is_carried_into_the_round_change_and_proposed_again(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=1)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.accept(proposal)
    votes(stage, proposal, (2, 3))
    stage.fire(TimerKind.ROUND)
    (change,) = stage.said(RoundChange)
    assert isinstance(change, RoundChange)
    assert change.block == proposal.block
    assert change.signed.claim is not None
    assert change.signed.claim.digest == proposal.block.digest
    stage.hear(stage.hands[2].round_change(1, 1, None))
    stage.hear(stage.hands[3].round_change(1, 1, None))
    (again,) = stage.said(Proposal)
    assert isinstance(again, Proposal)
    assert again.block.hash == proposal.block.hash
    assert again.block.round == 1
    assert again.block.builder == stage.hands[0].address
    assert len(again.round_changes or ()) == 3
    rules.check_proposal(again, stage.validator_set, stage.hands[2])


@both
def test_a_proof_of_preparation_survives_a_jump_to_a_later_round(rules: ProtocolRules) -> None:
    """If other validators move to a later round before this validator's timeout, it keeps its prepared certificate."""
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.accept(proposal)
    votes(stage, proposal, (1, 2))
    for index in range(3):
        stage.hear(stage.hands[index].round_change(1, 2, None))
    assert stage.machine.height is not None
    assert stage.machine.height.current == 2
    stage.fire(TimerKind.ROUND)
    (change,) = stage.said(RoundChange)
    assert isinstance(change, RoundChange)
    assert change.block == proposal.block


@both
def test_a_quorum_of_round_changes_moves_a_validator_without_a_request_of_its_own(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3, follows_others=False)
    stage.start_round_0()
    for index in range(3):
        stage.hear(stage.hands[index].round_change(1, 4, None))
    assert stage.machine.height is not None
    assert stage.machine.height.current == 4
    assert not stage.said(RoundChange)


@both
def test_f_plus_1_validators_in_later_rounds_are_followed(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3, validators=7)
    stage.start_round_0()
    stage.hear(stage.hands[0].round_change(1, 900, None))
    stage.hear(stage.hands[1].round_change(1, 5, None))
    assert stage.machine.height is not None
    assert stage.machine.height.current == 0
    stage.hear(stage.hands[2].round_change(1, 2, None))
    assert stage.machine.height.current == 2
    assert [message.round for message in stage.said(RoundChange)] == [2]


@both
def test_a_new_block_is_built_without_a_prepared_certificate(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=1)
    stage.start_round_0()
    stage.fire(TimerKind.ROUND)
    stage.now = 9.7
    stage.hear(stage.hands[2].round_change(1, 1, None))
    stage.hear(stage.hands[3].round_change(1, 1, None))
    (order,) = stage.done(BuildProposal)
    assert (order.round, order.timestamp) == (1, 9)
    stage.built(stage.block(1, 1))
    (said,) = stage.said(Proposal)
    assert isinstance(said, Proposal)
    rules.check_proposal(said, stage.validator_set, stage.hands[2])


@both
def test_answers_that_come_too_late_are_ignored(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=0)
    stage.start_round_0()
    stage.fire(TimerKind.ROUND)
    assert stage.built(stage.block(0)) == []
    stage.tell(TaskFailed(1, 0, "no state"))
    assert stage.machine.height is not None
    assert list(stage.machine.height.notes) == ["no state"]


@both
def test_at_the_cap_a_round_is_left_only_after_a_quorum_has_been_there_for_a_whole_time_out(
    rules: ProtocolRules,
) -> None:
    stage = Stage(rules, me=3, timing=RoundTiming(1.0, 4.0, 4.0))
    stage.start_round_0()
    stage.fire(TimerKind.ROUND)
    assert [message.round for message in stage.said(RoundChange)] == [1]
    for _ in range(3):
        stage.fire(TimerKind.ROUND)
        assert [message.round for message in stage.said(RoundChange)] == [1], "the request is repeated"
    stage.hear(stage.hands[0].round_change(1, 1, None))
    stage.now += 3.0
    stage.hear(stage.hands[1].prepare(1, 1, bytes(32)))
    assert stage.timer(TimerKind.ROUND) == stage.now + 4.0
    stage.fire(TimerKind.ROUND)
    assert [message.round for message in stage.said(RoundChange)] == [2]


# --- durable votes ------------------------------------------------------------------------------


@both
def test_a_restarted_validator_goes_on_after_the_round_it_voted_in(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.accept(proposal)
    votes(stage, proposal, (1, 2) if rules is QBFT else (1,))
    durable_votes = stage.done(StoreVotes)[0].durable_votes
    again = Stage(rules, me=3, durable_votes=durable_votes)
    again.start()
    (change,) = again.said(RoundChange)
    assert isinstance(change, RoundChange)
    assert change.round == 1
    assert change.block == proposal.block
    again.hear(stage.proposal(nonce=1))
    assert not again.done(CheckProposal)


@both
def test_a_restarted_validator_repeats_the_request_it_had_made(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3, durable_votes=DurableVotes(1, 5))
    stage.start()
    assert [message.round for message in stage.said(RoundChange)] == [5]
    assert stage.machine.height is not None
    assert stage.machine.height.current == 5


@both
def test_memory_of_another_height_is_ignored(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3, durable_votes=DurableVotes(7, 5))
    stage.start()
    assert not stage.said(RoundChange)


# --- empty blocks (QBFT) ------------------------------------------------------------------------


def test_q_08_an_empty_block_is_held_back_until_its_own_period() -> None:
    stage = Stage(QBFT, me=0, timing=RoundTiming(1.0, 20.0, 60.0, empty_period_s=10.0))
    stage.start()
    for second in range(1, 10):
        stage.now = float(second)
        stage.fire(TimerKind.BLOCK)
        stage.built(stage.block(0), is_empty=True)
        assert not stage.said(Proposal)
        assert stage.done(CancelTimer)
        assert stage.timer(TimerKind.BLOCK) == min(10.0, second + 1.0)
    stage.now = 10.0
    stage.fire(TimerKind.BLOCK)
    stage.built(stage.block(0), is_empty=True)
    assert stage.said(Proposal)


def test_q_08_a_block_with_transactions_is_proposed_at_once() -> None:
    stage = Stage(QBFT, me=0, timing=RoundTiming(1.0, 20.0, 60.0, empty_period_s=10.0))
    stage.start_round_0()
    stage.built(stage.block(0), is_empty=False)
    assert stage.said(Proposal)


def test_q_08_other_validators_wait_as_well_while_they_have_no_transactions() -> None:
    stage = Stage(QBFT, me=3, timing=RoundTiming(1.0, 2.0, 60.0, empty_period_s=10.0))
    stage.start()
    for second in range(1, 10):
        stage.now = float(second)
        stage.tell(BlockTimer(1, is_pool_empty=True))
        assert stage.machine.height is not None
        assert stage.machine.height.timers.expires_at is None
        assert stage.timer(TimerKind.BLOCK) == min(10.0, second + 1.0)
    stage.tell(BlockTimer(1, is_pool_empty=False))
    assert stage.timer(TimerKind.ROUND) == stage.now + 2.0


# --- periods below a second ---------------------------------------------------------------------


@both
def test_the_next_short_period_begins_with_the_proposal_of_this_block(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=1, timing=RoundTiming(0.25, 4.0, 32.0))
    stage.start()
    stage.now = 0.26
    proposal = stage.proposal()
    stage.hear(proposal)
    stage.now = 0.28
    stage.tell(ProposalChecked(1, 0, proposal.block.digest, None))
    stage.now = 0.33
    stage.start(Head(1, proposal.block.hash, 0, stage.hands[0].address))
    assert stage.timer(TimerKind.BLOCK) == 0.51


# --- offline proposers --------------------------------------------------------------------------


def silent_turn(stage: Stage) -> None:
    """Let the timeout of round 0 expire without a message of the proposer."""
    stage.start_round_0()
    stage.fire(TimerKind.ROUND)


@both
def test_the_first_missed_proposal_costs_a_timeout_and_the_next_one_none(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    silent_turn(stage)
    assert [message.round for message in stage.said(RoundChange)] == [1]
    stage.now += 3.0
    # validator 3 built block 1, so validator 0 is the next proposer again
    stage.start(Head(1, b"\1" * 32, int(stage.now), stage.hands[3].address))
    assert stage.machine.height is not None
    assert stage.timer(TimerKind.BLOCK) == int(stage.now) + 1
    stage.now = int(stage.now) + 1.0
    stage.fire(TimerKind.BLOCK)
    assert [message.round for message in stage.said(RoundChange)] == [1]
    assert stage.machine.height.current == 1


@both
def test_a_passed_over_proposer_proposes_again_after_its_next_message(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    silent_turn(stage)
    stage.now += 3.0
    stage.hear(stage.hands[0].round_change(1, 1, None), peer=1)
    stage.start(Head(1, b"\1" * 32, int(stage.now), stage.hands[3].address))
    stage.now = int(stage.now) + 1.0
    stage.fire(TimerKind.BLOCK)
    assert stage.machine.height is not None
    assert stage.machine.height.current == 0
    assert not stage.said(RoundChange)


@both
def test_several_who_are_gone_are_passed_over_together(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=6, validators=7)
    stage.start()
    stage.tell(Disconnected(stage.hands[0].address))
    stage.tell(Disconnected(stage.hands[1].address))
    stage.now = 1.0
    stage.fire(TimerKind.BLOCK)
    assert [message.round for message in stage.said(RoundChange)] == [2]


@both
def test_a_lost_connection_to_the_proposer_ends_its_round(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    stage.now = 1.5
    stage.tell(Disconnected(stage.hands[1].address))
    assert not stage.said(RoundChange), "it is not the turn of that one"
    stage.tell(Disconnected(stage.hands[0].address))
    assert not stage.said(RoundChange), "without both there is no quorum"
    stage.tell(Connected(stage.hands[1].address))
    stage.tell(Disconnected(stage.hands[0].address))
    assert [message.round for message in stage.said(RoundChange)] == [1]


@both
def test_a_connection_lost_before_the_round_ends_it_when_the_block_is_due(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start()
    stage.now = 0.5
    stage.tell(Disconnected(stage.hands[0].address))
    assert not stage.said(RoundChange)
    stage.now = 1.0
    stage.fire(TimerKind.BLOCK)
    assert [message.round for message in stage.said(RoundChange)] == [1]


@both
def test_a_proposal_that_has_arrived_is_not_passed_over(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    stage.hear(stage.proposal())
    stage.tell(Disconnected(stage.hands[0].address))
    assert not stage.said(RoundChange)


@both
def test_passing_over_can_be_switched_off(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3, passes_over=False)
    stage.start_round_0()
    stage.now = 1.5
    stage.tell(Disconnected(stage.hands[0].address))
    assert not stage.said(RoundChange)


@both
def test_messages_of_this_round_are_sent_again_to_new_connections(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    stage.accept(stage.proposal())
    (prepare,) = stage.said(Prepare)
    stage.tell(Connected(stage.hands[2].address))
    assert stage.done(ResendMessage) == [ResendMessage(prepare, stage.hands[2].address)]
    stage.fire(TimerKind.ROUND)
    (change,) = stage.said(RoundChange)
    stage.tell(Connected(stage.hands[2].address))
    assert stage.done(ResendMessage) == [ResendMessage(change, stage.hands[2].address)]
    stage.tell(Connected(b"\x99" * 20))
    assert stage.done(ResendMessage) == [], "nobody else is told"


# --- bodies of other blocks ---------------------------------------------------------------------


def swapped(proposal: Proposal) -> Proposal:
    """Return the same signed proposal with a body that does not match its header."""
    block = replace(proposal.block, encoded=proposal.block.encoded + b"other body")
    return replace(proposal, block=block, known_as=proposal.fingerprint + b"swapped")


def wrong_body(stage: Stage, proposal: Proposal) -> None:
    stage.tell(
        ProposalChecked(proposal.height, proposal.round, proposal.block.digest, "another body", is_body_wrong=True)
    )


@both
def test_the_proposal_counts_after_a_copy_with_another_body(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.hear(swapped(proposal), peer=1)
    assert not stage.done(RelayMessage)
    stage.hear(proposal)
    assert not stage.effects
    wrong_body(stage, proposal)
    (check,) = stage.done(CheckProposal)
    assert check.proposal == proposal
    stage.checked(proposal, None)
    assert len(stage.said(Prepare)) == 1
    assert [relay.message for relay in stage.done(RelayMessage)] == [proposal]


@both
def test_a_copy_with_another_body_alone_does_not_pin_the_round(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.hear(swapped(proposal), peer=1)
    wrong_body(stage, proposal)
    assert stage.effects == []
    height = stage.machine.height
    assert height is not None
    assert any(stage.hands[1].address.hex() in note for note in height.notes)
    stage.accept(proposal)
    assert len(stage.said(Prepare)) == 1


@both
def test_the_sender_of_another_body_gets_no_second_check(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.hear(swapped(proposal), peer=1)
    wrong_body(stage, proposal)
    again = swapped(swapped(proposal))
    stage.hear(again, peer=1)
    assert stage.effects == []


@both
def test_the_copy_of_the_proposer_is_checked_before_other_copies(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.hear(swapped(proposal), peer=1)
    stage.hear(swapped(swapped(proposal)), peer=2)
    stage.hear(proposal)
    wrong_body(stage, proposal)
    assert [check.proposal for check in stage.done(CheckProposal)] == [proposal]


@both
def test_the_sender_of_another_body_cannot_make_the_proposal_a_duplicate(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.hear(swapped(proposal), peer=1)
    stage.hear(proposal, peer=1)
    wrong_body(stage, proposal)
    stage.hear(proposal, peer=1)
    assert stage.effects == []
    stage.accept(proposal)
    assert len(stage.said(Prepare)) == 1

"""Tests the state machine above one height: filters, later heights, heads, stopping (scenarios I-16, I-22)."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import (
    CancelTimer,
    CatchUp,
    CheckProposal,
    Head,
    MessageReceived,
    Multicast,
    NewHead,
    RelayMessage,
    RoundTimer,
    SetTimer,
    StoreVotes,
    Suspended,
    TimerKind,
)
from ophion.consensus.bft.message_buffer import MessageCounts, MessageLimits
from ophion.consensus.bft.messages import Prepare, RoundChange
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.round import NOT_STARTED
from ophion.testing.simulation.fake_crypto import FakeMessageFactory
from tests.unit.consensus.bft.puppets import GENESIS, IBFT2, PROTOCOLS, QBFT, TIMING, Stage

both = pytest.mark.parametrize("rules", PROTOCOLS, ids=lambda rules: rules.name)


def head(stage: Stage, number: int, name: bytes = b"") -> Head:
    return Head(number, (name or b"head %d" % number).ljust(32, b"\0"), number, stage.hands[0].address)


@both
def test_messages_before_the_first_head_are_dropped(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    assert stage.hear(stage.hands[1].prepare(1, 0, bytes(32))) == []
    assert not stage.machine.is_running


@both
def test_a_message_is_relayed_once_and_not_back_to_peer_and_author(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    vote = stage.hands[1].prepare(1, 0, bytes(32))
    stage.hear(vote, peer=2)
    assert stage.done(RelayMessage) == [RelayMessage(vote, (stage.hands[2].address, stage.hands[1].address))]
    assert stage.hear(vote, peer=0) == []
    assert stage.machine.is_duplicate(vote.fingerprint)


@both
def test_messages_of_strangers_of_oneself_and_of_the_past_are_dropped(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start(head(stage, 4))
    outsider = Stage(rules, me=0, validators=9).hands[8]
    for message in (
        outsider.prepare(5, 0, bytes(32)),
        stage.hands[3].prepare(5, 0, bytes(32)),
        stage.hands[1].prepare(4, 0, bytes(32)),
    ):
        assert stage.hear(message) == []


@both
def test_i_16_messages_up_to_ten_heights_ahead_are_replayed_and_all_of_them_trigger_synchronisation(
    rules: ProtocolRules,
) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    for height in range(2, 13):
        stage.hear(stage.hands[1].round_change(height, 1, None), peer=2)
        assert stage.done(CatchUp) == [CatchUp(stage.hands[2].address, height - 1)]
        assert not stage.done(RelayMessage)
    for height in range(2, 13):
        stage.tell(NewHead(head(stage, height - 1), stage.addresses, TIMING))
        replayed = [effect.message.height for effect in stage.done(RelayMessage)]
        assert replayed == ([height] if height <= 11 else [])


def test_what_one_validator_says_at_a_height_is_passed_on_so_often_and_no_more() -> None:
    """Validators relay messages of one validator at one height up to a limit. Other validators would disconnect a
    flooding node.
    """
    stage = Stage(IBFT2, me=3)
    stage.start_round_0()
    passed_on = 0
    for number in range(200):
        vote = stage.hands[1].prepare(1, 0, bytes(32))
        stage.hear(type(vote)(vote.height, vote.round, vote.digest, vote.author, number.to_bytes(4, "big")))
        passed_on += len(stage.done(RelayMessage))
    assert passed_on == 64
    vote = stage.hands[2].prepare(1, 0, bytes(32))
    stage.hear(vote)
    assert len(stage.done(RelayMessage)) == 1, "others are handled as before"


def test_future_messages_have_a_limit() -> None:
    stage = Stage(IBFT2, me=3, limits=MessageLimits(future_messages=5))
    stage.start_round_0()
    for height in (2, 2, 2, 3, 3, 3):
        vote = stage.hands[1].prepare(height, 0, bytes(32))
        number = stage.machine.footprint()
        stage.hear(type(vote)(vote.height, vote.round, vote.digest, vote.author, number.to_bytes(4, "big")))
    stage.tell(NewHead(head(stage, 1), stage.addresses, TIMING))
    assert len(stage.done(RelayMessage)) == 3
    stage.tell(NewHead(head(stage, 2), stage.addresses, TIMING))
    assert stage.done(RelayMessage) == []


@both
def test_a_node_that_is_no_validator_only_follows_and_joins_when_voted_in(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    others = stage.addresses[:3]
    stage.tell(NewHead(head(stage, 0), others, TIMING))
    assert stage.effects == []
    assert stage.machine.height is None
    assert stage.hear(stage.hands[1].prepare(1, 0, bytes(32))) == []
    stage.tell(NewHead(head(stage, 1), stage.addresses, TIMING))
    assert stage.machine.height is not None
    stage.tell(NewHead(head(stage, 2), others, TIMING))
    assert stage.machine.height is None
    assert len(stage.done(CancelTimer)) == 2


@both
def test_heads_that_are_not_new_change_nothing_and_a_fork_is_noted(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start(head(stage, 5))
    running = stage.machine.height
    for known in (head(stage, 5), head(stage, 4)):
        assert stage.tell(NewHead(known, stage.addresses, TIMING)) == []
    assert stage.machine.height is running
    assert stage.machine.fork_note is None
    stage.tell(NewHead(head(stage, 5, b"another"), stage.addresses, TIMING))
    assert stage.machine.fork_note is not None
    assert stage.machine.height is running


@both
def test_timers_of_an_earlier_height_or_round_are_ignored(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    assert stage.tell(RoundTimer(0, 0)) == []
    assert stage.tell(RoundTimer(1, 3)) == []


@both
def test_a_suspended_machine_ignores_messages_and_keeps_its_votes(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.accept(proposal)
    stage.tell(Suspended())
    assert not stage.machine.is_running
    assert len(stage.done(CancelTimer)) == 2
    assert stage.hear(stage.hands[1].prepare(1, 0, bytes(32))) == []
    stage.start()
    assert [message.round for message in stage.said(RoundChange)] == [1], "it had voted in round 0"


@both
def test_the_next_height_begins_with_the_next_head(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=1)
    stage.start_round_0()
    stage.tell(NewHead(head(stage, 1), stage.addresses, TIMING))
    assert stage.machine.validator_set is not None
    assert stage.machine.validator_set.height == 2
    assert stage.machine.validator_set.proposer(0) == stage.hands[1].address
    assert stage.done(SetTimer)


def test_buffered_proposals_of_the_next_height_are_checked_when_it_begins() -> None:
    for rules in (IBFT2, QBFT):
        stage = Stage(rules, me=3)
        stage.start_round_0()
        proposal = stage.hands[1].proposal(2, 0, stage.block(1, height=2), None)
        stage.tell(MessageReceived(proposal, None))
        stage.tell(NewHead(head(stage, 1), stage.addresses, TIMING))
        assert len(stage.done(CheckProposal)) == 1


@both
def test_a_vote_before_a_stop_is_stored_before_it_is_repeated(rules: ProtocolRules) -> None:
    """After a stop, the validator stores a vote again before it repeats the vote, because the stop may have interrupted
    the write.
    """
    stage = Stage(rules, me=3)
    stage.start_round_0()
    stage.fire(TimerKind.ROUND)
    (asked,) = stage.said(RoundChange)
    stage.tell(Suspended())
    stage.start()
    assert [message.round for message in stage.said(RoundChange)] == [asked.round]
    kinds = [type(effect) for effect in stage.effects if isinstance(effect, (StoreVotes, Multicast))]
    assert kinds == [StoreVotes, Multicast]
    (remembered,) = stage.done(StoreVotes)
    assert (remembered.durable_votes.height, remembered.durable_votes.round) == (1, 1)


# --- without durable votes ----------------------------------------------------------------------


def came_back(rules: ProtocolRules, timestamp: int = 0) -> Stage:
    stage = Stage(rules, me=3, is_blank=True)
    stage.now = 100.0
    stage.start(Head(5, b"\5" * 32, timestamp, stage.hands[0].address))
    return stage


@both
def test_a_validator_without_memory_lets_the_height_pass(rules: ProtocolRules) -> None:
    stage = came_back(rules)
    assert stage.machine.height is None
    assert stage.machine.skips_height
    assert stage.timer(TimerKind.ROUND) == 100.0 + 2 * stage.timing.request_timeout_s
    stage.start(Head(6, b"\6" * 32, 111, stage.hands[1].address))
    assert stage.done(StoreVotes) == [StoreVotes(DurableVotes(6))], "the next start finds a memory"
    assert stage.machine.height is not None
    assert not stage.machine.skips_height


@both
def test_a_validator_without_memory_joins_others_who_do_not_get_on(rules: ProtocolRules) -> None:
    stage = came_back(rules)
    stage.hear(stage.hands[0].round_change(6, 2, None))
    stage.now = 108.0
    stage.tell(RoundTimer(6, NOT_STARTED))
    assert stage.machine.height is None
    assert stage.timer(TimerKind.ROUND) == 116.0
    stage.hear(stage.hands[1].round_change(6, 1, None))
    stage.now = 132.0
    stage.tell(RoundTimer(6, NOT_STARTED))
    assert [message.round for message in stage.said(RoundChange)] == [3]


@both
def test_a_validator_of_a_new_network_votes_at_once(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3, is_blank=True)
    stage.start_round_0()
    stage.accept(stage.proposal())
    assert stage.said(Prepare)
    stage.start(Head(1, stage.proposal().block.hash, 1, stage.hands[0].address))
    assert stage.machine.height is not None


@both
def test_whatever_comes_in_is_counted(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    stage.start(Head(5, b"\5" * 32, 0, stage.hands[0].address))
    digest = bytes(32)
    outsider = FakeMessageFactory(b"\x99" * 20, rules)
    stage.hear(stage.hands[1].prepare(6, 0, digest))
    stage.hear(stage.hands[1].prepare(6, 0, digest))
    stage.hear(stage.hands[1].prepare(5, 0, digest))
    stage.hear(stage.hands[1].prepare(7, 0, digest))
    stage.hear(stage.hands[1].prepare(70, 0, digest))
    stage.hear(outsider.prepare(6, 0, digest))
    stage.hear(stage.hands[3].prepare(6, 0, digest), peer=1)
    assert stage.machine.counts == MessageCounts(
        received=7, duplicate=1, stale=1, early=2, too_early=1, foreign=1, own=1
    )


# --- peers that are ahead -----------------------------------------------------------------------


def held(stage: Stage, begins_at: float) -> None:
    stage.tell(NewHead(GENESIS, stage.addresses, stage.timing, begins_at))


@both
def test_nothing_is_signed_while_peers_report_a_higher_head(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=0)
    held(stage, 4.0)
    assert stage.effects == [SetTimer(TimerKind.ROUND, 4.0, RoundTimer(1, NOT_STARTED))]
    stage.now = 3.0
    for index in (1, 2, 3):
        stage.hear(stage.hands[index].round_change(1, 1, None))
        assert not stage.said(RoundChange)
    assert stage.machine.height is None


@both
def test_a_held_height_begins_after_the_timeout_with_the_received_messages(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    held(stage, 4.0)
    proposal = stage.proposal()
    stage.hear(proposal)
    assert stage.effects == []
    stage.now = 4.0
    stage.tell(RoundTimer(1, NOT_STARTED))
    assert [check.proposal for check in stage.done(CheckProposal)] == [proposal]
    assert not stage.machine.is_held


@both
def test_a_held_height_begins_at_once_when_the_reason_is_gone(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    held(stage, 4.0)
    held(stage, 0.0)
    assert stage.machine.height is not None
    assert not stage.machine.is_held


@both
def test_blocks_of_peers_end_the_wait_at_their_height(rules: ProtocolRules) -> None:
    stage = Stage(rules, me=3)
    held(stage, 4.0)
    stage.start(Head(1, b"\1" * 32, 1, stage.hands[0].address))
    assert stage.machine.height is not None
    assert stage.machine.height.validator_set.height == 2

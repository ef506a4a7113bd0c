"""The status names the missing messages when consensus stalls."""

from __future__ import annotations

import json

from ophion.consensus.bft.events import Head, NewHead, StoreVotes, Suspended, TimerKind
from ophion.consensus.bft.messages import Prepare, RoundChange
from ophion.consensus.bft.status import BftStatus, Phase, status_of
from tests.unit.consensus.bft.puppets import IBFT2, QBFT, TIMING, Stage


def status(stage: Stage, connected: tuple[int, ...] | None = None) -> BftStatus:
    peers = None if connected is None else [stage.hands[index].address for index in connected]
    return status_of(stage.machine, stage.now, peers)


def test_before_it_starts_and_while_suspended() -> None:
    stage = Stage(IBFT2, me=3)
    assert status(stage).phase is Phase.STOPPED
    stage.start()
    stage.tell(Suspended())
    found = status(stage)
    assert found.phase is Phase.STOPPED
    assert "not running" in found.explanation[0]


def test_a_node_that_is_no_validator_follows() -> None:
    stage = Stage(QBFT, me=3)
    stage.tell(NewHead(Head(8, bytes(32), 8, bytes(20)), stage.addresses[:3], TIMING))
    found = status(stage)
    assert (found.phase, found.height, found.quorum) == (Phase.FOLLOWING, 9, 2)
    assert "not a validator of block 9" in found.explanation[0]


def test_a_validator_without_memory_waits_out_the_height() -> None:
    stage = Stage(QBFT, me=3, is_blank=True)
    stage.start(Head(8, bytes(32), 0, bytes(20)))
    found = status(stage)
    assert found.phase is Phase.LOST_STATE
    assert "no record of its earlier votes" in found.explanation[0]


def test_the_phases_of_a_good_round() -> None:
    stage = Stage(QBFT, me=3)
    stage.start()
    stage.now = 0.25
    found = status(stage)
    assert found.phase is Phase.WAITING_FOR_BLOCK_TIME
    assert found.round is None
    assert "due in 0.8 s" in found.explanation[0] or "due in 0.7 s" in found.explanation[0]
    stage.start_round_0()
    stage.fire(TimerKind.BLOCK)
    found = status(stage)
    assert found.phase is Phase.WAITING_FOR_PROPOSAL
    assert found.proposer == stage.hands[0].address
    assert f"Waiting for 0x{stage.hands[0].address.hex()} to propose" in found.explanation[0]
    proposal = stage.proposal()
    stage.accept(proposal)
    found = status(stage)
    assert found.phase is Phase.PREPARING
    assert found.proposal == proposal.block.hash
    assert found.prepares is not None
    assert found.prepares.arrived == (stage.hands[3].address,)
    assert "2 more prepares" in found.explanation[0]
    for index in (1, 2):
        stage.hear(stage.hands[index].prepare(1, 0, proposal.block.digest))
    found = status(stage)
    assert found.phase is Phase.COMMITTING
    assert found.prepared_round == 0
    assert found.is_quorum_reachable
    assert "2 more commits" in found.explanation[0]
    for index in (1, 2):
        stage.hear(stage.hands[index].commit(1, 0, proposal.block.digest, proposal.block.digest))
    assert status(stage).phase is Phase.DECIDED


def test_a_stall_for_lack_of_validators_is_named() -> None:
    stage = Stage(IBFT2, me=3)
    stage.start_round_0()
    assert status(stage).is_quorum_reachable is None
    stage.fire(TimerKind.ROUND)
    stage.hear(stage.hands[1].round_change(1, 1, None))
    found = status(stage)
    assert found.phase is Phase.WAITING_FOR_ROUND_CHANGES
    assert found.round == 1
    assert found.is_quorum_reachable is False
    assert found.silent == (stage.hands[0].address, stage.hands[2].address)
    text = " ".join(found.explanation)
    assert "3 of 4 validators are needed and 2 are online" in text
    assert stage.hands[2].address.hex() in text
    assert "1 earlier round has ended without a block" in text
    assert "The round ends in 8.0 s." in text


def test_who_is_connected_makes_the_answer_sharper() -> None:
    stage = Stage(IBFT2, me=3)
    stage.start_round_0()
    assert status(stage, (0, 1)).is_quorum_reachable
    found = status(stage, (0,))
    assert found.is_quorum_reachable is False
    assert found.disconnected == (stage.hands[1].address, stage.hands[2].address)
    assert "2 are connected" in found.explanation[0]


def test_refusals_are_shown() -> None:
    stage = Stage(IBFT2, me=3)
    stage.start_round_0()
    proposal = stage.proposal()
    stage.hear(proposal)
    stage.checked(proposal, "wrong state root")
    assert status(stage).notes == ("the proposal of round 0 was refused: wrong state root",)


def test_own_proposal_and_a_fork_are_named() -> None:
    stage = Stage(IBFT2, me=0)
    stage.start_round_0()
    assert "This node is the proposer" in status(stage).explanation[0]
    stage.tell(NewHead(Head(0, b"\1" * 32, 0, bytes(20)), stage.addresses, TIMING))
    assert "forked" in status(stage).explanation[0]


def test_a_second_node_with_the_same_key_is_named() -> None:
    stage = Stage(IBFT2, me=3)
    stage.start_round_0()
    stage.hear(stage.hands[3].round_change(1, 1, None), peer=1)
    assert stage.effects == []
    assert "the same key" in status(stage).explanation[0]
    stage.start(Head(1, b"\1" * 32, 1, stage.hands[0].address))
    assert "the same key" not in " ".join(status(stage).explanation)


def test_the_status_is_plain_json() -> None:
    stage = Stage(QBFT, me=3)
    stage.start_round_0()
    shown = json.loads(json.dumps(status(stage, ()).as_object()))
    assert shown["proposer"] == "0x" + stage.hands[0].address.hex()
    assert shown["commits"]["needed"] == 3
    assert shown["quorumReachable"] is False
    assert json.dumps(BftStatus("qbft", Phase.STOPPED).as_object())


def test_own_messages_that_a_peer_sends_back_are_no_second_node() -> None:
    stage = Stage(IBFT2, me=3)
    stage.start_round_0()
    stage.accept(stage.proposal())
    (prepare,) = stage.said(Prepare)
    stage.hear(prepare, peer=1)
    stage.fire(TimerKind.ROUND)
    (request,) = stage.said(RoundChange)
    stage.hear(request, peer=1)
    assert stage.machine.counts.own == 2
    assert not stage.machine.has_foreign_signature


def test_votes_of_an_earlier_run_that_a_peer_sends_back_are_no_second_node() -> None:
    earlier = Stage(IBFT2, me=3)
    earlier.start_round_0()
    earlier.accept(earlier.proposal())
    (prepare,) = earlier.said(Prepare)
    stage = Stage(IBFT2, me=3, durable_votes=earlier.done(StoreVotes)[-1].durable_votes)
    stage.start()
    stage.hear(prepare, peer=1)
    assert not stage.machine.has_foreign_signature
    stage.hear(stage.hands[3].prepare(1, 0, b"\2" * 32), peer=1)
    assert stage.machine.has_foreign_signature


def test_waiting_for_blocks_of_peers_is_named() -> None:
    stage = Stage(QBFT, me=3)
    stage.tell(NewHead(Head(0, bytes(32), 0, bytes(20)), stage.addresses, TIMING, begins_at=4.0))
    assert status(stage).phase is Phase.WAITING_FOR_BLOCKS

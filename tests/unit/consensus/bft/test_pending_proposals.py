"""While proposals are checked, the machine stores one digest per round and one copy per sender."""

from __future__ import annotations

from dataclasses import replace

from ophion.consensus.bft.messages import Proposal
from ophion.consensus.bft.pending_proposals import PendingProposal, PendingProposals, ProposalAction
from tests.unit.consensus.bft.puppets import QBFT, Stage


def _proposal(round_number: int = 0, body: bytes = b"") -> Proposal:
    stage = Stage(QBFT, 1)
    proposal = stage.hands[0].proposal(1, round_number, stage.block(0, round_number), None)
    return replace(proposal, block=replace(proposal.block, encoded=proposal.block.encoded + body))


def test_the_first_proposal_pins_its_round() -> None:
    offers, proposal = PendingProposals(), _proposal()
    assert offers.state(proposal, b"a") is ProposalAction.WANTED
    assert offers.add(PendingProposal(proposal, b"a", 1.0))
    assert offers.is_pinned(0)
    assert offers.state(proposal, b"a") is ProposalAction.REFUSED, "one copy per sender"
    assert offers.state(proposal, b"b") is ProposalAction.KNOWN, "the same bytes"
    assert offers.state(_proposal(body=b"x"), b"b") is ProposalAction.WANTED
    other = replace(proposal, block=replace(proposal.block, digest=b"\x01" * 32))
    assert offers.state(other, b"b") is ProposalAction.KNOWN, "another digest"


def test_copies_are_checked_after_a_wrong_body_and_the_proposer_comes_first() -> None:
    offers, proposal = PendingProposals(), _proposal()
    offers.add(PendingProposal(proposal, b"a", 1.0))
    assert not offers.add(PendingProposal(_proposal(body=b"x"), b"b", 2.0))
    assert not offers.add(PendingProposal(_proposal(body=b"y"), proposal.author, 3.0))
    digest = proposal.block.digest
    first = offers.checked(0, digest)
    assert first is not None
    assert first.peer == b"a"
    assert offers.another_copy(0, b"a") == _proposal(body=b"y")
    assert offers.state(_proposal(1), b"a") is ProposalAction.REFUSED, "it has sent a wrong body"
    for peer in (proposal.author, b"b"):
        found = offers.checked(0, digest)
        assert found is not None
        assert found.peer == peer
        copy = offers.another_copy(0, peer)
    assert copy is None
    assert not offers.is_pinned(0)
    assert offers.checked(0, digest) is None


def test_a_round_stays_pinned_after_its_check_until_a_later_round_begins() -> None:
    offers, proposal = PendingProposals(), _proposal()
    offers.add(PendingProposal(proposal, b"a", 1.0))
    assert offers.checked(0, proposal.block.digest) is not None
    offers.close(0)
    assert offers.is_pinned(0)
    assert offers.state(proposal, b"b") is ProposalAction.KNOWN
    assert len(offers) == 1
    offers.forget_below(1)
    assert not offers.is_pinned(0)
    assert len(offers) == 0


def test_the_number_of_rounds_is_limited() -> None:
    offers = PendingProposals()
    for number in range(8):
        assert offers.add(PendingProposal(_proposal(number), b"a", 1.0))
    assert offers.state(_proposal(8), b"b") is ProposalAction.REFUSED

"""Byzantine nodes follow their strategy, with only their own key."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.messages import BftMessage, Commit, Prepare, Proposal, RoundChange
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.fake_crypto import has_other_body, stand_in_address, stand_in_seal_author
from ophion.testing.simulation.fault_plan import LinkQuality, Misconduct
from ophion.testing.simulation.message_delivery import Payload
from ophion.testing.simulation.network import SimulatedNetwork


def received(
    kinds: tuple[Misconduct, ...], seconds: float = 12.0, crash: int | None = None
) -> list[tuple[int, BftMessage]]:
    """Return the messages of node 0, with their receivers."""
    found: list[tuple[int, BftMessage]] = []
    for rules in (Ibft2(), Qbft()):
        world = SimulatedNetwork(NetworkSettings(rules, 4), 3, {0: kinds})

        def note(sender: int, receiver: int, payload: Payload) -> bool:
            if sender == 0 and hasattr(payload, "author") and payload.author == stand_in_address(0):
                found.append((receiver, payload))
            return True

        world.delivery.filter = note
        world.gossips = False
        world.start()
        if crash is not None:
            world.crash(crash)
        world.run(seconds)
        assert world.checker.violations == []
    return found


def test_silence_says_less_than_others() -> None:
    assert len(received((Misconduct.SILENCE,))) < len(received((Misconduct.DOUBLE_PROPOSAL,)))


def test_a_double_proposal_shows_each_member_one_story() -> None:
    proposals = [
        (to, message) for to, message in received((Misconduct.DOUBLE_PROPOSAL,)) if isinstance(message, Proposal)
    ]
    by_place: dict[tuple[int, int], set[bytes]] = {}
    for _, message in proposals:
        by_place.setdefault((message.height, message.round), set()).add(message.block.hash)
    assert any(len(blocks) > 1 for blocks in by_place.values())


def test_equivocation_votes_for_everything() -> None:
    votes = [message for _, message in received((Misconduct.EQUIVOCATION,)) if isinstance(message, Prepare | Commit)]
    assert {type(vote) for vote in votes} == {Prepare, Commit}


def test_forged_seals_are_not_seals() -> None:
    commits = [message for _, message in received((Misconduct.FORGED_SEALS,)) if isinstance(message, Commit)]
    assert commits
    assert all(stand_in_seal_author(commit.digest, commit.seal) != commit.author for commit in commits)


def test_stale_round_changes_are_sent_when_rounds_change() -> None:
    changes = [
        message
        for _, message in received((Misconduct.STALE_ROUND_CHANGES,), 30.0, crash=1)
        if isinstance(message, RoundChange)
    ]
    assert changes


@pytest.mark.parametrize("kinds", [tuple(Misconduct), *[(kind,) for kind in Misconduct]])
def test_one_liar_of_four_does_no_harm(kinds: tuple[Misconduct, ...]) -> None:
    for rules in (Ibft2(), Qbft()):
        world = SimulatedNetwork(NetworkSettings(rules, 4), 11, {2: kinds})
        world.start()
        world.run(60.0)
        assert world.checker.violations == []
        assert min(member.height for member in world.honest) >= 8


def test_a_body_swap_keeps_the_signed_digest() -> None:
    swapped = [
        message
        for _, message in received((Misconduct.BODY_SWAP,))
        if isinstance(message, Proposal) and has_other_body(message.block)
    ]
    assert swapped
    assert all(message.signed.digest == message.block.digest for message in swapped)


def test_withheld_proposals_leave_the_votes() -> None:
    kinds = {type(message) for _, message in received((Misconduct.WITHHELD_PROPOSALS,))}
    assert Proposal not in kinds
    assert {Prepare, Commit} <= kinds


def test_other_digests_are_those_of_no_block() -> None:
    votes = [message for _, message in received((Misconduct.OTHER_DIGESTS,)) if isinstance(message, Prepare | Commit)]
    assert len({vote.digest for vote in votes}) > 20


@pytest.mark.parametrize("rules", [Ibft2(), Qbft()], ids=lambda rules: rules.name)
@pytest.mark.parametrize("kind", Misconduct)
def test_one_liar_of_four_leaves_more_than_half_of_the_blocks(rules: ProtocolRules, kind: Misconduct) -> None:
    """With one Byzantine validator of four, a network with large blocks makes more than half as many blocks as an
    honest network.
    """
    heights = []
    for misconduct in ({}, {2: (kind,)}):
        world = SimulatedNetwork(NetworkSettings(rules, 4), 11, misconduct)
        world.delivery.link = LinkQuality(0.002, 0.2)
        world.start()
        world.run(60.0)
        assert world.checker.violations == []
        heights.append(min(member.height for member in world.honest))
    assert heights[1] > heights[0] // 2, heights


@pytest.mark.parametrize("rules", [Ibft2(), Qbft()], ids=lambda rules: rules.name)
def test_replayed_messages_are_not_taken_for_a_second_node(rules: ProtocolRules) -> None:
    world = SimulatedNetwork(NetworkSettings(rules, 4), 11, {2: (Misconduct.REPLAY,)})
    world.start()
    world.run(20.0)
    machines = [member.machine for member in world.honest if member.machine is not None]
    assert sum(machine.counts.own for machine in machines) > 0
    assert not any(machine.has_foreign_signature for machine in machines)

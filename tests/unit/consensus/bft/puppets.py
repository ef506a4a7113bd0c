"""Runs one real state machine. Tests script the messages of all other validators."""

from __future__ import annotations

from typing import TypeVar

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import (
    BftEffect,
    BftEvent,
    BlockTimer,
    CheckProposal,
    Head,
    MessageReceived,
    Multicast,
    NewHead,
    ProposalBuilt,
    ProposalChecked,
    RoundTimer,
    SetTimer,
    TimerKind,
)
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_buffer import MessageLimits
from ophion.consensus.bft.messages import BftMessage, PreparedRound, Proposal, ProposedBlock
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.round_change import RoundChanges
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.state_machine import DEFAULT_LIMITS, BftStateMachine
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import ZERO_ADDRESS, Address
from ophion.testing.simulation.fake_crypto import Content, FakeMessageFactory, stand_in_address, stand_in_block

IBFT2: ProtocolRules = Ibft2()
QBFT: ProtocolRules = Qbft()
PROTOCOLS = [IBFT2, QBFT]
TIMING = RoundTiming(1.0, 4.0, 32.0)
GENESIS = Head(0, bytes(32), 0, ZERO_ADDRESS)

E = TypeVar("E", bound=BftEffect)


class Stage:
    """A state machine at one position of the validator set, and message factories for all other validators.

    At height 1, validator n proposes in round n.
    """

    def __init__(
        self,
        rules: ProtocolRules,
        me: int,
        validators: int = 4,
        timing: RoundTiming = TIMING,
        limits: MessageLimits = DEFAULT_LIMITS,
        durable_votes: DurableVotes | None = None,
        follows_others: bool = True,
        passes_over: bool = True,
        is_blank: bool = False,
    ) -> None:
        self.rules = rules
        self.hands = [FakeMessageFactory(stand_in_address(index), rules) for index in range(validators)]
        self.me = me
        self.timing = timing
        self.now = 0.0
        self.machine = BftStateMachine(
            rules, self.hands[me], limits, follows_others, durable_votes, passes_over, is_blank
        )
        self.effects: list[BftEffect] = []
        self.validator_set = ValidatorSet.of(1, self.addresses, ZERO_ADDRESS)

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(hand.address for hand in self.hands)

    def start(self, head: Head = GENESIS) -> list[BftEffect]:
        return self.tell(NewHead(head, self.addresses, self.timing))

    def start_round_0(self) -> list[BftEffect]:
        """Start the machine, and fire the block timer."""
        self.start()
        self.now = 1.0
        if self.rules.starts_on_block_timer or self.me == 0:
            return self.fire(TimerKind.BLOCK)
        return []

    def tell(self, event: BftEvent) -> list[BftEffect]:
        self.effects = self.machine.handle(event, self.now)
        return self.effects

    def hear(self, message: BftMessage, peer: int | None = None) -> list[BftEffect]:
        return self.tell(MessageReceived(message, message.author if peer is None else self.hands[peer].address))

    def fire(self, kind: TimerKind) -> list[BftEffect]:
        """Fire the timer that was set last."""
        height = self.machine.height
        assert height is not None
        if kind is TimerKind.ROUND:
            assert height.timers.expires_at is not None
            self.now = max(self.now, height.timers.expires_at)
            return self.tell(RoundTimer(height.validator_set.height, height.current))
        return self.tell(BlockTimer(height.validator_set.height))

    def block(self, builder: int, round_number: int = 0, nonce: int = 0, height: int = 1) -> ProposedBlock:
        content = Content(bytes(32), 1, nonce)
        return stand_in_block(height, self.hands[builder].address, content, round_number)

    def proposal(self, round_number: int = 0, nonce: int = 0) -> Proposal:
        """Return a proposal by the proposer of this round."""
        proposer = round_number % len(self.hands)
        return self.hands[proposer].proposal(1, round_number, self.block(proposer, round_number, nonce), None)

    def accept(self, proposal: Proposal) -> list[BftEffect]:
        """Deliver a proposal to the machine and accept its block."""
        self.hear(proposal)
        assert any(isinstance(effect, CheckProposal) for effect in self.effects), "the proposal was not even checked"
        return self.checked(proposal, None)

    def checked(self, proposal: Proposal, problem: str | None) -> list[BftEffect]:
        return self.tell(ProposalChecked(proposal.height, proposal.round, proposal.block.digest, problem))

    def built(self, block: ProposedBlock, is_empty: bool = False) -> list[BftEffect]:
        return self.tell(ProposalBuilt(block.height, block.round, block, is_empty))

    def prepared(self, block: ProposedBlock, by: tuple[int, ...]) -> PreparedRound:
        """Return a prepared certificate with the prepares of these validators."""
        prepares = tuple(self.hands[index].prepare(block.height, block.round, block.digest) for index in by)
        proposer = self.hands[block.round % len(self.hands)]
        signed = proposer.proposal(block.height, block.round, block, None).signed
        return PreparedRound(block.round, block, prepares, signed if self.rules.certifies_proposal else None)

    def justified(self, round_number: int, askers: dict[int, PreparedRound | None], block: ProposedBlock) -> Proposal:
        """Return a proposal of a later round that these round changes justify."""
        changes = RoundChanges()
        for index, prepared in askers.items():
            changes.add(self.hands[index].round_change(1, round_number, prepared))
        proposer = self.hands[round_number % len(self.hands)]
        return proposer.proposal(1, round_number, block, changes.certificate(round_number))

    def said(self, kind: type[BftMessage]) -> list[BftMessage]:
        """Return the messages of a type among the last effects."""
        return [
            effect.message
            for effect in self.effects
            if isinstance(effect, Multicast) and isinstance(effect.message, kind)
        ]

    def done(self, kind: type[E]) -> list[E]:
        """Return the effects of a type among the last effects."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def timer(self, kind: TimerKind) -> float | None:
        """Return the time of the timer in the last effects."""
        found = [effect.at for effect in self.effects if isinstance(effect, SetTimer) and effect.kind is kind]
        return found[-1] if found else None

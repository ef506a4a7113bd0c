"""A real node with a Byzantine validator. `lying_command` replaces the `ophion` command.

Strategies are names of `LiveStrategy`, separated by commas. The validator uses the next strategy at every height. It
has only its own key, and otherwise behaves like any validator.
"""

from __future__ import annotations

import os
import random
import runpy
import sys
from collections.abc import Collection
from enum import Enum
from pathlib import Path

from msgspec.structs import replace

from ophion.consensus.bft.extra_data import ExtraForm
from ophion.consensus.bft.messages import BftMessage, Commit, Prepare, Proposal, ProposedBlock, RawMessage, RoundChange
from ophion.primitives import rlp
from ophion.primitives.header import Header
from ophion.primitives.types import Address
from ophion.producer.bft_driver import BftDriver
from ophion.producer.validator_gossip import ValidatorGossip
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.faults.gossip_tap import GossipTap

_OLD_MESSAGES = 50


class LiveStrategy(Enum):
    """Misconduct of the validator at one height."""

    BODY_SWAP = "body-swap"
    """The validator sends every proposal with the body of another block. It also sends such a copy before each own
    proposal.
    """
    EQUIVOCATION = "equivocation"
    """The validator proposes one block to some validators and another block to the others, and votes for both."""
    WITHHELD_PROPOSALS = "withheld-proposals"
    STALE_ROUND_CHANGES = "stale-round-changes"
    """The validator requests later rounds all the time, without its prepared block."""
    OTHER_DIGESTS = "other-digests"
    """The validator prepares and commits blocks that do not exist."""
    REPLAY = "replay"
    """The validator sends all received messages back to all validators, including their own and old messages."""


ALL_STRATEGIES = ",".join(strategy.value for strategy in LiveStrategy)


def lying_command(strategies: str = ALL_STRATEGIES) -> tuple[str, ...]:
    """Return the command that starts a node with a Byzantine validator."""
    root = Path(__file__).parents[2]
    script = f"import sys; sys.path.insert(0, {str(root)!r}); import tests.faults.lying_validator as it; it.main()"
    return sys.executable, "-c", script, strategies


class LyingGossip(GossipTap):
    """Changes the messages of the driver."""

    def __init__(self, driver: BftDriver, gossip: ValidatorGossip, strategies: list[LiveStrategy]) -> None:
        super().__init__(gossip)
        self._driver = driver
        self._strategies = strategies
        self._random = random.Random(7)
        self._old: list[RawMessage] = []
        self._requests = 0

    # --- Gossip ---------------------------------------------------------------------------------

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        strategy = self._strategy(message.height)
        if isinstance(message, Proposal):
            if strategy is LiveStrategy.WITHHELD_PROPOSALS:
                return
            if strategy is LiveStrategy.EQUIVOCATION:
                self._propose_twice(message, list(validators))
                return
            if strategy is LiveStrategy.BODY_SWAP:
                self._send_all(self._swapped(message))
        if isinstance(message, Prepare | Commit) and strategy is LiveStrategy.OTHER_DIGESTS:
            self.gossip.multicast(self._with_other_digest(message), validators)
            return
        self.gossip.multicast(message, validators)

    def relay(self, message: BftMessage, exclude: Collection[Address | None]) -> None:
        """Relay no message."""

    # --- messages of others ---------------------------------------------------------------------

    def record(self, raw: RawMessage) -> None:
        """React to a message before the driver handles it, so that the false message is sent first."""
        message = self._driver._protocol.decode(raw)
        strategy = self._strategy(message.height)
        if (
            strategy is LiveStrategy.BODY_SWAP
            and isinstance(message, Proposal)
            and self._driver.protocol_name == "ibft2"
        ):
            self._send_all(self._swapped(message))
        elif strategy is LiveStrategy.STALE_ROUND_CHANGES and not isinstance(message, RoundChange):
            self._requests = self._requests % 8 + 1
            later = message.round + self._requests
            self._send_all(self._driver._factory.round_change(message.height, later, None).raw)
        elif strategy is LiveStrategy.REPLAY:
            self._old = [*self._old, raw][-_OLD_MESSAGES:]
            self._send_all(raw)
            self._send_all(self._random.choice(self._old))

    # --- attacks --------------------------------------------------------------------------------

    def _swapped(self, proposal: Proposal) -> RawMessage:
        """Return the proposal with a body that does not match its header. IBFT 2.0 signs the header only."""
        header = rlp.split_list(proposal.block.encoded, 1024)[0]
        body = rlp.list_of([legacy_transaction(DEV_KEYS[0], self._random.randrange(1000))])
        block = rlp.list_of([header, body, rlp.EMPTY_LIST])
        if self._driver.protocol_name == "ibft2":
            parts = rlp.split_list(proposal.raw.data, 1024)
            return RawMessage(proposal.raw.code, rlp.list_of([parts[0], block, *parts[2:]]))
        candidate = self._driver._protocol.candidate(block)
        return self._driver._factory.proposal(proposal.height, proposal.round, candidate, None).raw

    def _propose_twice(self, proposal: Proposal, validators: list[Address]) -> None:
        factory, other = self._driver._factory, self._other_block(proposal.block)
        if proposal.round:
            self.gossip.multicast(proposal, validators)
            return
        second = factory.proposal(proposal.height, proposal.round, other, None)
        for number, address in enumerate(validators):
            first, later = (proposal, second) if number % 2 else (second, proposal)
            self.gossip.send(first, address)
            self.gossip.send(later, address)
        self.gossip.multicast(factory.prepare(proposal.height, proposal.round, other.digest), validators)
        self.gossip.multicast(factory.commit(proposal.height, proposal.round, other.digest, other.digest), validators)

    def _other_block(self, block: ProposedBlock) -> ProposedBlock:
        """Return another valid block of the same height, with different vanity data."""
        protocol = self._driver._protocol
        parts = rlp.split_list(block.encoded, 1024)
        header = Header.decode(parts[0])
        extra = replace(protocol.decode_extra(header.extra_data), vanity=os.urandom(32))
        header = replace(header, extra_data=protocol.encode_extra(extra, ExtraForm.FULL))
        return protocol.candidate(rlp.list_of([header.encode(), *parts[1:]]))

    def _with_other_digest(self, message: Prepare | Commit) -> Prepare | Commit:
        factory, digest = self._driver._factory, os.urandom(32)
        if isinstance(message, Prepare):
            return factory.prepare(message.height, message.round, digest)
        return factory.commit(message.height, message.round, digest, digest)

    def _strategy(self, height: int) -> LiveStrategy:
        return self._strategies[height % len(self._strategies)]

    def _send_all(self, raw: RawMessage) -> None:
        # send the message to every validator like the real gossip
        for address in self._driver.validators:
            self.gossip._send(raw, address, may_drop=True)  # type: ignore[attr-defined]


def install(strategies: list[LiveStrategy]) -> None:
    """Make every driver of this process Byzantine."""
    join, received = BftDriver.join, BftDriver.received

    def lying_join(driver: BftDriver, gossip: ValidatorGossip) -> None:
        join(driver, LyingGossip(driver, gossip, strategies))

    def lying_received(driver: BftDriver, raw: RawMessage, peer: Address | None) -> None:
        if isinstance(driver._gossip, LyingGossip) and driver._tasks is not None:
            driver._gossip.record(raw)
        received(driver, raw, peer)

    BftDriver.join = lying_join  # type: ignore[method-assign]
    BftDriver.received = lying_received  # type: ignore[method-assign]


def main() -> None:
    """Run the node of this process with a Byzantine driver."""
    install([LiveStrategy(name) for name in sys.argv.pop(1).split(",")])
    sys.argv[0] = "ophion"
    runpy.run_module("ophion", None, "__main__", alter_sys=True)

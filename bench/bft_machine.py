"""Measure the BFT state machine: decoded messages per second on one core, excluding cryptography and decoding.

One validator receives all messages of the others for many blocks: proposals, prepares and commits. Usage:

    .venv/bin/python bench/bft_machine.py [--blocks 2000] [--validators 4 7 21]
"""

from __future__ import annotations

import argparse
import time

from ophion.consensus.bft.events import (
    BftEvent,
    BlockTimer,
    CheckProposal,
    Head,
    ImportBlock,
    MessageReceived,
    NewHead,
    ProposalChecked,
)
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.state_machine import BftStateMachine
from ophion.primitives.types import ZERO_ADDRESS, ZERO_HASH
from ophion.testing.simulation.fake_crypto import Content, FakeMessageFactory, stand_in_address, stand_in_block

GOAL = 50_000
TIMING = RoundTiming(1.0, 10.0)


def script(rules: ProtocolRules, validators: int, blocks: int) -> list[tuple[BftEvent, ...]]:
    """Return the messages that the last validator receives at each height, except heights at which it proposes."""
    hands = [FakeMessageFactory(stand_in_address(index), rules) for index in range(validators)]
    addresses = tuple(hand.address for hand in hands)
    heights = []
    for number in range(1, blocks + 1):
        builder = ZERO_ADDRESS  # with this builder, every height has the first validator as proposer
        head = Head(number - 1, ZERO_HASH, number - 1, builder)
        block = stand_in_block(number, hands[0].address, Content(ZERO_HASH, number, 0))
        events: list[BftEvent] = [NewHead(head, addresses, TIMING), BlockTimer(number)]
        events.append(MessageReceived(hands[0].proposal(number, 0, block, None), addresses[0]))
        events.append(ProposalChecked(number, 0, block.digest, None))
        voters = hands[:-1] if rules.proposer_prepares else hands[1:-1]
        events += [MessageReceived(hand.prepare(number, 0, block.digest), hand.address) for hand in voters]
        events += [
            MessageReceived(hand.commit(number, 0, block.digest, block.digest), hand.address) for hand in hands[:-1]
        ]
        heights.append(tuple(events))
    return heights


def measure(rules: ProtocolRules, validators: int, blocks: int) -> float:
    """Return the messages per second that the state machine handles."""
    heights = script(rules, validators, blocks)
    machine = BftStateMachine(rules, FakeMessageFactory(stand_in_address(validators - 1), rules))
    messages = sum(isinstance(event, MessageReceived) for events in heights for event in events)
    decided = 0
    started = time.perf_counter()
    for number, events in enumerate(heights, 1):
        now = float(number)
        for event in events:
            for effect in machine.handle(event, now):
                decided += type(effect) is ImportBlock
                assert type(effect) is not CheckProposal or type(event) is MessageReceived
    elapsed = time.perf_counter() - started
    assert decided == blocks, f"{decided} of {blocks} blocks decided"
    return messages / elapsed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=2000)
    parser.add_argument("--validators", type=int, nargs="+", default=[4, 7, 21])
    arguments = parser.parse_args()
    slowest = None
    for rules in (Ibft2(), Qbft()):
        for validators in arguments.validators:
            rate = max(measure(rules, validators, arguments.blocks) for _ in range(3))
            slowest = rate if slowest is None else min(slowest, rate)
            print(f"{rules.name:6} {validators:3} validators  {rate:10,.0f} messages/s")
    print(f"goal: {GOAL:,} messages/s; slowest: {slowest:,.0f}")
    return 0 if slowest is not None and slowest >= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())

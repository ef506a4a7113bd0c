"""`BftInbox`: decodes the consensus messages of peers and hands them to the driver.

Duplicates and messages above the limits of the genesis file are dropped before they are decoded. Large messages are
decoded in a lane (`MessageIntake`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from ophion.consensus.bft.message_codec import signatures_expected
from ophion.consensus.bft.message_factory import BftProtocol
from ophion.consensus.bft.messages import BftMessage, RawMessage
from ophion.consensus.bft.state_machine import BftStateMachine
from ophion.errors import DecodeError
from ophion.native.crypto import keccak256
from ophion.primitives.types import Address, Hash32
from ophion.producer.message_intake import MessageIntake
from ophion.runtime.thread_pools import Lanes

_UNKNOWN_SHARE: Final = 4
"""Divisor: messages of peers that are not validators may fill at most a quarter of the queue."""


class BftInbox:
    """Messages of peers on their way to the state machine."""

    def __init__(
        self,
        running: Callable[[], tuple[BftProtocol, BftStateMachine]],
        queued: Callable[[], int],
        accept: Callable[[BftMessage, Address | None], None],
        lanes: Lanes,
    ) -> None:
        """Create the inbox. `running` returns the protocol and the state machine, which change when a network moves to
        QBFT. `queued` returns the number of events that wait for the state machine. `accept` gets each decoded message.
        """
        self.malformed: Callable[[Address | None], None] = lambda peer: None
        """Called with the sender of a queued message that is invalid."""
        self._running = running
        self._queued = queued
        self._accept = accept
        self._lanes = lanes
        self._intake = MessageIntake(self._take_later, self._take_large)

    def put(self, raw: RawMessage, peer: Address | None, tasks: asyncio.TaskGroup) -> None:
        """Handle a message of a peer. Raises `DecodeError` for an invalid message, unless the message is decoded
        later.
        """
        if not self._intake.must_wait(raw, peer):
            self._take(raw, peer)
        elif not self._intake.put(raw, peer, tasks):
            self._running()[1].counts.dropped += 1

    def clear(self) -> None:
        """Drop the waiting messages. Called when consensus and its tasks have stopped."""
        self._intake.clear()

    def _take(self, raw: RawMessage, peer: Address | None) -> None:
        protocol, machine = self._running()
        if self._is_wanted(machine, keccak256(raw.data), peer):
            with _counting_malformed(machine):
                message = protocol.decode(raw, _max_signatures(machine))
            self._accept(message, peer)

    def _take_later(self, raw: RawMessage, peer: Address | None) -> None:
        """Handle a queued message. If the message is invalid, call `malformed`, because `put` can no longer raise."""
        try:
            self._take(raw, peer)
        except DecodeError:
            self.malformed(peer)

    async def _take_large(self, raw: RawMessage, peer: Address | None) -> None:
        """Hash and decode a large message in a worker thread."""
        lane = self._lanes.peers
        fingerprint = await lane.run(lambda: keccak256(raw.data))
        protocol, machine = self._running()
        if not self._is_wanted(machine, fingerprint, peer):
            return
        max_signatures = _max_signatures(machine)
        try:
            with _counting_malformed(machine):
                message = await lane.run(lambda: protocol.decode(raw, max_signatures))
        except DecodeError:
            self.malformed(peer)
            return
        if protocol is self._running()[0]:  # the network may have moved to QBFT while the message was decoded
            self._accept(message, peer)

    def _is_wanted(self, machine: BftStateMachine, fingerprint: Hash32, peer: Address | None) -> bool:
        if machine.is_duplicate(fingerprint):
            machine.counts.duplicate += 1
            return False
        validator_set = machine.validator_set
        is_unknown = peer is not None and (validator_set is None or peer not in validator_set.members)
        if self._queued() >= machine.limits.message_queue // (_UNKNOWN_SHARE if is_unknown else 1):
            machine.counts.dropped += 1
            return False
        return True


def _max_signatures(machine: BftStateMachine) -> int:
    validator_set = machine.validator_set
    return signatures_expected(0 if validator_set is None else len(validator_set))


@contextmanager
def _counting_malformed(machine: BftStateMachine) -> Iterator[None]:
    try:
        yield
    except DecodeError:
        machine.counts.malformed += 1
        raise

"""`Validators`: sends consensus messages to validator peers, and relays received messages.

Own messages go to every validator of their height at once. A validator that reads too slowly is disconnected, and gets
the messages again when it reconnects. Relayed messages are sent unchanged, and dropped for slow peers. Most validators
get a large proposal from its author, so this node relays it later, and only to validators that have not voted on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import Final

from msgspec import Struct

from ophion.consensus.bft.messages import BftMessage, Commit, Prepare, Proposal, RawMessage
from ophion.peers.consensus.validator_nodes import ValidatorNodes
from ophion.peers.peer import Peer
from ophion.primitives.types import Address, Hash32
from ophion.producer.bft_driver import BftDriver
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

_MIN_DELAYED_BYTES: Final = 4096
"""Size in bytes above which a proposal is relayed after `_RELAY_DELAY_S`."""
_RELAY_DELAY_S: Final = 0.25
_MAX_PROPOSALS: Final = 8


class _ValidatorPeer(Struct, frozen=True):
    """A peer that speaks a protocol variant."""

    peer: Peer
    capability: str


class Validators:
    """Implements `Gossip` with the connected peers, for one driver."""

    def __init__(self, driver: BftDriver, clock: Clock, catch_up: Callable[[Address | None, int], None]) -> None:
        self.dropped = 0
        """Messages dropped by a size or rate limit."""
        self.nodes = ValidatorNodes()
        """Nodes that have proved for which validator they act."""
        self._driver = driver
        driver.malformed = self._blame
        self._clock = clock
        self._catch_up = catch_up
        self._connections: dict[tuple[str, Address], list[_ValidatorPeer]] = {}
        """Connections by protocol variant and validator. Several nodes may act for one validator."""
        self._voted: OrderedDict[Hash32, set[Address]] = OrderedDict()
        """Validators that voted on a proposal, by the digest of the proposal. These validators need no relayed copy."""

    # --- connections ----------------------------------------------------------------------------

    def now(self) -> float:
        """Monotonic time in seconds, for rate limits."""
        return self._clock.monotonic()

    def is_validator(self, address: Address) -> bool:
        """Whether a peer is a validator of the current height."""
        return address in self._driver.validators

    def came(self, peer: Peer, variant: str, capability: str) -> None:
        """Add a connected peer."""
        self._connections.setdefault((variant, peer.validator_address), []).append(_ValidatorPeer(peer, capability))
        if variant == self._driver.protocol_name:
            self._driver.connected(peer.validator_address)

    def left(self, peer: Peer, variant: str) -> None:
        """Remove a disconnected peer. Its validator may have other connections."""
        address = peer.validator_address
        connections = self._connections.get((variant, address), [])
        left = [connection for connection in connections if connection.peer is not peer]
        if left:
            self._connections[variant, address] = left
        elif connections:
            del self._connections[variant, address]
            if variant == self._driver.protocol_name:
                self._driver.disconnected(address)

    def identified(self, peer: Peer, validator: Address) -> None:
        """Assign a peer to the validator for which it acts, unless this validator has `MAX_NODES` connected nodes."""
        if validator == peer.validator_address:
            return
        if not self.nodes.connected(peer.address, validator):
            log.debug("too many nodes for a validator enode=%s validator=0x%s", peer.enode, validator.hex())
            return
        attached = [
            (variant, connection.capability)
            for (variant, address), connections in self._connections.items()
            if address == peer.validator_address
            for connection in connections
            if connection.peer is peer
        ]
        for variant, _ in attached:
            self.left(peer, variant)
        peer.validator_address = validator
        for variant, capability in attached:
            self.came(peer, variant, capability)

    def released(self, peer: Peer) -> None:
        """Free the slot of a disconnected peer among the nodes of its validator."""
        self.nodes.disconnected(peer.address, is_kept=self.is_validator(peer.validator_address))

    def received(self, variant: str, raw: RawMessage, peer: Address) -> None:
        """Hand a message to the driver. Ignores a protocol variant that the current height does not use."""
        if variant == self._driver.protocol_name:
            self._driver.received(raw, peer)

    def _blame(self, address: Address | None) -> None:
        """Lower the score of a peer after an invalid message."""
        if address is not None:
            for connection in self._of(address):
                connection.peer.blame()

    def _of(self, address: Address) -> list[_ValidatorPeer]:
        """Return the connections of a validator in the current protocol variant."""
        return self._connections.get((self._driver.protocol_name, address), [])

    # --- Gossip ---------------------------------------------------------------------------------

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        for address in validators:
            self._send(message.raw, address, may_drop=False)

    def send(self, message: BftMessage, to: Address) -> None:
        self._send(message.raw, to, may_drop=False)

    def relay(self, message: BftMessage, exclude: Collection[Address | None]) -> None:
        if isinstance(message, Prepare | Commit):
            self._note_vote(message.digest, message.author)
        if isinstance(message, Proposal) and len(message.raw.data) > _MIN_DELAYED_BYTES:
            digest = message.block.digest
            asyncio.get_running_loop().call_later(_RELAY_DELAY_S, self._relay_late, message.raw, digest, exclude)
        else:
            self._relay(message.raw, exclude)

    def catch_up(self, peer: Address | None, height: int) -> None:
        for connection in self._of(peer) if peer is not None else ():
            self._catch_up(connection.peer.address, height)

    def connected(self) -> Collection[Address]:
        variant = self._driver.protocol_name
        return [address for name, address in self._connections if name == variant]

    def clients(self) -> Iterable[str]:
        validators = self._driver.validators
        return [
            connection.peer.hello.client_id
            for (_, address), connections in self._connections.items()
            if address in validators
            for connection in connections
        ]

    def client_of(self, address: Address) -> str | None:
        connections = self._of(address)
        return connections[0].peer.hello.client_id if connections else None

    # --- sending --------------------------------------------------------------------------------

    def _relay_late(self, raw: RawMessage, digest: Hash32, exclude: Collection[Address | None]) -> None:
        self._relay(raw, {*exclude, *self._voted.get(digest, ())})

    def _relay(self, raw: RawMessage, exclude: Collection[Address | None]) -> None:
        for address in self._driver.validators:
            # several nodes may share one validator key, and only one of these nodes has sent the message
            if address not in exclude or len(self._of(address)) > 1:
                self._send(raw, address, may_drop=True)

    def _send(self, raw: RawMessage, to: Address, may_drop: bool) -> None:
        for connection in self._of(to):
            if connection.peer.is_open:
                connection.peer.send(connection.capability, raw.code, raw.data, may_drop=may_drop)

    def _note_vote(self, digest: Hash32, author: Address) -> None:
        voters = self._voted.get(digest)
        if voters is None:
            voters = self._voted[digest] = set()
            if len(self._voted) > _MAX_PROPOSALS:
                self._voted.popitem(last=False)
        voters.add(author)

"""`Validators`: sends consensus messages to validator peers, and relays received messages.

Own messages go immediately to every validator of their height. A validator that reads too slowly is disconnected, and
gets the messages again when it reconnects. Relayed messages are sent unchanged, and dropped for slow peers. Relayed
messages go to the validators that are not connected to the author (`ValidatorLinks`). Most validators get a large
proposal from its author or another validator. So this node relays a large proposal after a delay, and only to
validators that have not voted on it. The author may have sent it only to some validators. So after a longer delay,
which grows with the validator set, this node also relays it to validators that are connected to the author.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable
from typing import Final

from msgspec import Struct

from ophion.consensus.bft.messages import BftMessage, Commit, Prepare, Proposal, RawMessage
from ophion.peers.consensus.validator_links import ValidatorLinks
from ophion.peers.consensus.validator_nodes import ValidatorNodes
from ophion.peers.peer import Peer
from ophion.primitives.types import Address, Hash32
from ophion.producer.bft_driver import BftDriver
from ophion.runtime.clock import Clock

log = logging.getLogger(__name__)

_MIN_DELAYED_BYTES: Final = 4096
"""Size in bytes above which a proposal is relayed after `_RELAY_DELAY_S`."""
_MAX_KEPT: Final = 4
"""Number of recent messages kept per validator. Peers that lose their connection to the validator get these messages.
"""
_RELAY_DELAY_S: Final = 0.25
_DELAY_PER_VALIDATOR_S: Final = 0.025
"""Delay per validator of the set, in seconds, before a proposal is relayed to validators that are connected to its
author. In a large set, votes take longer to arrive.
"""
_MAX_PROPOSALS: Final = 8


class _ValidatorPeer(Struct, frozen=True):
    """A peer with the sub-protocol of one protocol variant (IBFT 2.0 or QBFT)."""

    peer: Peer
    capability: str


class Validators:
    """Sends the messages of one consensus driver to the connected peers. Implements `ValidatorGossip`."""

    def __init__(self, driver: BftDriver, clock: Clock, catch_up: Callable[[Address | None, int], None]) -> None:
        self.dropped = 0
        """Number of messages dropped by a size or rate limit."""
        self.nodes = ValidatorNodes()
        """Nodes that have proved for which validator they act."""
        self.links = ValidatorLinks(
            clock, self._linked_nodes, self._is_node_of_validator, self._forget_targets, self._on_lost_links
        )
        """To which validators each peer is connected, as the peers report."""
        self._driver = driver
        driver.inbox.malformed = self._blame
        self._clock = clock
        self._catch_up = catch_up
        self._connections: dict[tuple[str, Address], list[_ValidatorPeer]] = {}
        """Connections by protocol variant and validator. Several nodes may act for one validator."""
        self._voted: OrderedDict[Hash32, set[Address]] = OrderedDict()
        """Validators that voted on a proposal, by the digest of the proposal. Such validators need no relayed copy of
        the proposal.
        """
        self._relayed: dict[Address, deque[BftMessage]] = {}
        """The latest messages of each author, without large proposals."""
        self._targets: dict[Address, list[_ValidatorPeer]] = {}
        """By author: the connections to validators that have reported no connection to the author. This node relays
        messages of the author to these validators.
        """
        self._targets_of: frozenset[Address] = frozenset()
        """The validator set for which `_targets` is valid."""
        self._targets_in = ""
        """The protocol variant for which `_targets` is valid."""

    # --- connections ----------------------------------------------------------------------------

    def now(self) -> float:
        """Monotonic time in seconds, for rate limits."""
        return self._clock.monotonic()

    def is_validator(self, address: Address) -> bool:
        """Whether a peer is a validator of the current height."""
        return address in self._driver.validators

    @property
    def count(self) -> int:
        """Number of validators at the current height."""
        return len(self._driver.validators)

    @property
    def period_s(self) -> float:
        """Block period of the current height in seconds."""
        return self._driver.period_s

    def are_linked(self, peer: Peer, other: Peer) -> bool:
        """Whether two peers have both reported their connection."""
        return self.links.reaches(peer, other.address) and self.links.reaches(other, peer.address)

    def add_peer(self, peer: Peer, variant: str, capability: str) -> None:
        """Add a peer whose consensus sub-protocol has started."""
        self._connections.setdefault((variant, peer.validator_address), []).append(_ValidatorPeer(peer, capability))
        self._forget_targets()
        self.links.gained()
        if variant == self._driver.protocol_name:
            self._driver.connected(peer.validator_address)

    def left(self, peer: Peer, variant: str) -> None:
        """Remove a disconnected peer. The peer's validator may have other connections."""
        address = peer.validator_address
        connections = self._connections.get((variant, address), [])
        left = [connection for connection in connections if connection.peer is not peer]
        self._forget_targets()
        self.links.lost()
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
            self.add_peer(peer, variant, capability)

    def released(self, peer: Peer) -> None:
        """Free the slot of a disconnected peer. Each validator has `MAX_NODES` slots for connected nodes."""
        self.nodes.disconnected(peer.address, is_kept=self.is_validator(peer.validator_address))

    def received(self, variant: str, raw: RawMessage, peer: Address) -> None:
        """Hand a message to the consensus driver. Ignores messages of a protocol variant that the current height does
        not use.
        """
        self._note_validators()
        if variant == self._driver.protocol_name:
            self._driver.received(raw, peer)

    def _blame(self, address: Address | None) -> None:
        """Lower the score of a peer after an invalid message."""
        if address is not None:
            for connection in self._of(address):
                connection.peer.penalize()

    def _of(self, address: Address) -> list[_ValidatorPeer]:
        """Return the connections of a validator in the current protocol variant."""
        return self._connections.get((self._driver.protocol_name, address), [])

    # --- ValidatorGossip (called by the driver) -------------------------------------------------

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        for address in validators:
            self._send(message.raw, address, may_drop=False)

    def send(self, message: BftMessage, to: Address) -> None:
        self._send(message.raw, to, may_drop=False)

    def relay(self, message: BftMessage, exclude: Collection[Address | None]) -> None:
        raw = message.raw
        if isinstance(message, Prepare | Commit):
            self._note_vote(message.digest, message.author)
        is_large = len(raw.data) > _MIN_DELAYED_BYTES
        if not is_large:
            self._relayed.setdefault(message.author, deque(maxlen=_MAX_KEPT)).append(message)
        if not is_large or not isinstance(message, Proposal):
            is_direct = all(address == message.author for address in exclude)
            for connection in self._targets_for(message.author, is_direct):
                if self._may_lack(connection.peer.validator_address, exclude):
                    self._send_to(connection, raw, may_drop=True)
        if isinstance(message, Proposal):
            self._relay_later(message, exclude, is_large)

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

    def _may_lack(self, address: Address, exclude: Collection[Address | None]) -> bool:
        # a validator in `exclude` has sent the message. If several nodes act for this validator, the other nodes may
        # lack the message
        return address not in exclude or len(self._of(address)) > 1

    def _relay_later(self, proposal: Proposal, exclude: Collection[Address | None], is_large: bool) -> None:
        """Schedule relays of a proposal. Each relay goes only to validators that have not voted on the proposal."""
        later = asyncio.get_running_loop().call_later
        others = {address for address in self._driver.validators if self._may_lack(address, exclude)}
        targets = self._targets_for(proposal.author, all(address == proposal.author for address in exclude))
        unreached = {connection.peer.validator_address for connection in targets}
        if is_large and others & unreached:
            later(_RELAY_DELAY_S, self._relay_unvoted, proposal, others & unreached)
        if others - unreached:
            delay_s = max(_RELAY_DELAY_S, _DELAY_PER_VALIDATOR_S * self.count)
            later(delay_s, self._relay_unvoted, proposal, others - unreached)

    def _relay_unvoted(self, proposal: Proposal, validators: Collection[Address]) -> None:
        """Relay a proposal to the members of `validators` that have not voted on the proposal. Does nothing if
        consensus at the height of the proposal is reached.
        """
        if self._driver.current_height <= proposal.height:
            voters = self._voted.get(proposal.block.digest, ())
            for address in validators:
                if address not in voters:
                    self._send(proposal.raw, address, may_drop=True)

    def _send(self, raw: RawMessage, to: Address, may_drop: bool) -> None:
        for connection in self._of(to):
            self._send_to(connection, raw, may_drop)

    def _send_to(self, connection: _ValidatorPeer, raw: RawMessage, may_drop: bool) -> None:
        if connection.peer.is_open:
            connection.peer.send(connection.capability, raw.code, raw.data, may_drop=may_drop)

    def _targets_for(self, author: Address, is_direct: bool = True) -> list[_ValidatorPeer]:
        """Return the connections of validators that may not have received a message of `author`. Several nodes may act
        for the author. A validator is left out only if it has reported connections to all of these nodes, because any
        of them may be stopped. `is_direct` means that a node of the author has sent the message to this node. Otherwise
        the author may have nodes that this node does not know, and no validator is left out.
        """
        validators = self._note_validators()
        if not is_direct and self.nodes.has_nodes(author):
            return [connection for address in validators for connection in self._of(address)]
        targets = self._targets.get(author)
        if targets is None:
            nodes = [connection.peer.address for connection in self._of(author)] or [author]
            targets = self._targets[author] = [
                connection
                for address in validators
                for connection in self._of(address)
                if not all(self._has_link(connection.peer, node) for node in nodes)
            ]
        return targets

    def _note_validators(self) -> frozenset[Address]:
        """Return the validators of the current height. After a change of the validators or of the protocol variant,
        clears `_targets` and reports the connections of this node again.
        """
        validators, variant = self._driver.validators, self._driver.protocol_name
        if validators is not self._targets_of or variant != self._targets_in:
            if validators != self._targets_of or variant != self._targets_in:
                self._forget_targets()
                self._relayed = {kept: messages for kept, messages in self._relayed.items() if kept in validators}
                self.links.gained()
            self._targets_of, self._targets_in = validators, variant
        return validators

    def _has_link(self, peer: Peer, node: Address) -> bool:
        return peer.address == node or self.links.reaches(peer, node)

    def _forget_targets(self) -> None:
        self._targets.clear()

    def _linked_nodes(self) -> Iterable[Address]:
        """Return the nodes of validators that this node is connected to in the current protocol variant."""
        variant, validators = self._driver.protocol_name, self._driver.validators
        found = (
            connections
            for (name, address), connections in self._connections.items()
            if name == variant and address in validators
        )
        return (connection.peer.address for connections in found for connection in connections)

    def _is_node_of_validator(self, peer: Peer) -> bool:
        return self.is_validator(peer.validator_address)

    def _on_lost_links(self, peer: Peer, nodes: frozenset[Address]) -> None:
        """Send a peer the recent messages of validators to which the peer has lost its connection."""
        if not self._is_node_of_validator(peer):
            return
        height = self._driver.current_height
        validators = {self.nodes.validator_of(node) for node in nodes} & self._driver.validators
        missed = [message for one in validators for message in self._relayed.get(one, ()) if message.height >= height]
        for connection in self._of(peer.validator_address):
            if connection.peer is peer:
                for message in missed:
                    self._send_to(connection, message.raw, may_drop=True)

    def _note_vote(self, digest: Hash32, author: Address) -> None:
        voters = self._voted.get(digest)
        if voters is None:
            voters = self._voted[digest] = set()
            if len(self._voted) > _MAX_PROPOSALS:
                self._voted.popitem(last=False)
        voters.add(author)

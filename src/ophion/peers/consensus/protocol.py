"""`ConsensusProtocol`: the four messages of one BFT protocol on every connection that shares it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ophion.consensus.bft.message_factory import BftProtocol
from ophion.consensus.bft.messages import MessageKind, RawMessage
from ophion.errors import DecodeError
from ophion.peers.consensus.validators import Validators
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Capability
from ophion.peers.token_bucket import TokenBucket

_MAX_MESSAGES: Final = 1000
_MESSAGES_A_SECOND: Final = 500
"""For a validator: each of us says a few things in a block, and everybody passes everything on."""
_MAX_BYTES: Final = 64 * 1024 * 1024
_BYTES_A_SECOND: Final = 16 * 1024 * 1024
"""For a validator: the largest blocks there are, once a second."""
_MAX_VOTE_BYTES: Final = 1024
"""A prepare or a commit, which has some 200 bytes."""
_MAX_BYTES_OF_UNKNOWN: Final = 16 * 1024
"""One message of a peer that is no validator. Blocks of a future validator wait until it is one."""
_MAX_OF_STRANGERS: Final = 50
_OF_STRANGERS_A_SECOND: Final = 5
"""For anybody else, who has nothing to say, unless it is a validator of a height that we do not know yet."""
_MAX_BYTES_OF_STRANGERS: Final = 64 * 1024
_BYTES_OF_STRANGERS_A_SECOND: Final = 16 * 1024
"""Votes are small."""


class ConsensusProtocol:
    """A sub-protocol of connections."""

    def __init__(self, variant: BftProtocol, validators: Validators) -> None:
        name, version, length = variant.subprotocol
        first = length - len(MessageKind)
        names = tuple(f"{code:#04x}" for code in range(first)) + tuple(kind.name.lower() for kind in MessageKind)
        self.variant = variant
        self.first_code = first
        """The codes below are nobody's."""
        self.validators = validators
        limits = {first + kind: _MAX_VOTE_BYTES for kind in (MessageKind.PREPARE, MessageKind.COMMIT)}
        self.capability = Capability(name, version, length, names, limits)
        self.capabilities: Sequence[Capability] = (self.capability,)

    def attach(self, peer: Peer, version: int) -> ConsensusPeer:
        """A peer speaks this protocol; there is no handshake."""
        attached = ConsensusPeer(peer, self)
        self.validators.came(peer, self.variant.name, self.capability.name)
        return attached


class ConsensusPeer:
    """The protocol on one connection."""

    def __init__(self, peer: Peer, protocol: ConsensusProtocol) -> None:
        self._peer = peer
        self._protocol = protocol
        self._trusted = (TokenBucket(_MAX_MESSAGES, _MESSAGES_A_SECOND), TokenBucket(_MAX_BYTES, _BYTES_A_SECOND))
        self._strange = (
            TokenBucket(_MAX_OF_STRANGERS, _OF_STRANGERS_A_SECOND),
            TokenBucket(_MAX_BYTES_OF_STRANGERS, _BYTES_OF_STRANGERS_A_SECOND),
        )

    def received(self, code: int, payload: bytes) -> None:
        """Hand a message to the driver. One that cannot be read is dropped (consensus.md 0.4): no reason to part."""
        protocol, peer = self._protocol, self._peer
        if code < protocol.first_code:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"{protocol.capability} has no message {code:#04x}")
        validators = protocol.validators
        is_validator = validators.is_validator(peer.address)
        if not is_validator and len(payload) > _MAX_BYTES_OF_UNKNOWN:
            validators.crowded_out += 1
            return
        messages, size = self._trusted if is_validator else self._strange
        now = validators.now()
        # nothing is owed: a validator that passes on the flood of another is heard again at once
        if not (messages.take(1, now) and size.take(len(payload), now)):
            validators.crowded_out += 1
            return
        try:
            validators.received(protocol.variant.name, RawMessage(code, payload), peer.address)
        except DecodeError:
            peer.blame()

    def oversized(self, code: int, size: int) -> None:
        """A vote over its size limit."""
        raise PeerMisbehaved(DisconnectReason.BREACH, f"{self._protocol.capability} vote of {size} bytes")

    def closed(self) -> None:
        self._protocol.validators.left(self._peer, self._protocol.variant.name)

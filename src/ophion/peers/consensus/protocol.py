"""`ConsensusProtocol`: the sub-protocol of IBFT 2.0 or QBFT, with its four messages."""

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
"""Messages per second that a validator may send. Large networks and short block periods have a higher limit."""
_MESSAGES_PER_VALIDATOR: Final = 20
"""Messages per second that a peer may send for each validator of the network. A validator that runs another client
relays two votes of every validator per block.
"""
_MESSAGES_PER_BLOCK: Final = 4
"""Messages per block that a peer may send for each validator of the network, for block periods below 0.2 s."""
_MIN_PERIOD_S: Final = 0.05
"""Minimum block period in the computation of the rate limit, in seconds."""
_MAX_BYTES: Final = 64 * 1024 * 1024
_BYTES_A_SECOND: Final = 16 * 1024 * 1024
"""Limit of bytes per second from a validator: one block of the maximum size."""
_MAX_VOTE_BYTES: Final = 1024
"""Size limit of a prepare or a commit, which has about 200 bytes."""
_MAX_UNKNOWN_MESSAGE_BYTES: Final = 16 * 1024
"""Size limit of a message from a peer that is not a validator."""
_MAX_UNKNOWN_MESSAGES: Final = 50
_UNKNOWN_MESSAGES_A_SECOND: Final = 5
"""Limit of messages per second from a peer that is not a known validator. The peer may be a validator of a later
height.
"""
_MAX_UNKNOWN_BYTES: Final = 64 * 1024
_UNKNOWN_BYTES_A_SECOND: Final = 16 * 1024
"""Limit of bytes per second from a peer that is not a known validator. The limit is enough for votes."""


def message_cost(validators: int, period_s: float) -> float:
    """Return how many tokens one message takes from the rate limit of a validator. Messages cost less in a large
    validator set and with a short block period.
    """
    limit = validators * max(_MESSAGES_PER_VALIDATOR, _MESSAGES_PER_BLOCK / max(period_s, _MIN_PERIOD_S))
    return min(1.0, _MESSAGES_A_SECOND / max(1.0, limit))


class ConsensusProtocol:
    """The sub-protocol of IBFT 2.0 or QBFT."""

    def __init__(self, variant: BftProtocol, validators: Validators) -> None:
        name, version, length = variant.subprotocol
        first = length - len(MessageKind)
        names = tuple(f"{code:#04x}" for code in range(first)) + tuple(kind.name.lower() for kind in MessageKind)
        self.variant = variant
        self.first_code = first
        """The first message code in use; the sub-protocol reserves the lower codes."""
        self.validators = validators
        limits = {first + kind: _MAX_VOTE_BYTES for kind in (MessageKind.PREPARE, MessageKind.COMMIT)}
        self.capability = Capability(name, version, length, names, limits)
        self.capabilities: Sequence[Capability] = (self.capability,)

    def attach(self, peer: Peer, version: int) -> ConsensusPeer:
        """Start the protocol on a connection. The protocol has no handshake message."""
        attached = ConsensusPeer(peer, self)
        self.validators.add_peer(peer, self.variant.name, self.capability.name)
        return attached


class ConsensusPeer:
    """The consensus sub-protocol on one connection."""

    def __init__(self, peer: Peer, protocol: ConsensusProtocol) -> None:
        self._peer = peer
        self._protocol = protocol
        self._validator_limits = (
            TokenBucket(_MAX_MESSAGES, _MESSAGES_A_SECOND),
            TokenBucket(_MAX_BYTES, _BYTES_A_SECOND),
        )
        self._unknown_limits = (
            TokenBucket(_MAX_UNKNOWN_MESSAGES, _UNKNOWN_MESSAGES_A_SECOND),
            TokenBucket(_MAX_UNKNOWN_BYTES, _UNKNOWN_BYTES_A_SECOND),
        )

    def received(self, code: int, payload: bytes) -> None:
        """Hand a message to the consensus driver. An undecodable message, or one above a limit, is dropped without a
        disconnect (consensus.md 0.4).
        """
        protocol, peer = self._protocol, self._peer
        if code < protocol.first_code:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"{protocol.capability} has no message {code:#04x}")
        validators = protocol.validators
        is_validator = validators.is_validator(peer.validator_address)
        if not is_validator and len(payload) > _MAX_UNKNOWN_MESSAGE_BYTES:
            validators.dropped += 1
            return
        messages, size = self._validator_limits if is_validator else self._unknown_limits
        cost = message_cost(validators.count, validators.period_s) if is_validator else 1.0
        now = validators.now()
        # take tokens of both limits or of none, so that dropped messages do not delay later messages of the validator
        if messages.left(now) < cost or size.left(now) < len(payload):
            validators.dropped += 1
            return
        messages.spend(cost, now)
        size.spend(len(payload), now)
        try:
            validators.received(protocol.variant.name, RawMessage(code, payload), peer.validator_address)
        except DecodeError:
            peer.penalize()

    def oversized(self, code: int, size: int) -> None:
        """Disconnect a peer that sends a vote over its size limit."""
        raise PeerMisbehaved(DisconnectReason.BREACH, f"{self._protocol.capability} vote of {size} bytes")

    def closed(self) -> None:
        self._protocol.validators.left(self._peer, self._protocol.variant.name)

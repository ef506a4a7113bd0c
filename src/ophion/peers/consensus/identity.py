"""`IdentityProtocol`: a node with a separate validator key proves for which validator it acts.

Other clients find a validator by its node id. Nodes that share a validator key have different node ids, so each signs
its node id with the validator key and sends the signature after Hello. The RLPx handshake proves the node id, so
another node cannot use the signature. The sub-protocol `vid/1` has this one message; `vid/2` adds the report of
connections (`ValidatorLinks`), and `vid/3` the senders of the transactions in the next Transactions message (decision
217).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ophion.consensus.bft.signatures import message_author
from ophion.native.crypto import keccak256
from ophion.peers.consensus.validator_links import MAX_REPORT_BYTES
from ophion.peers.consensus.validators import Validators
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Capability
from ophion.primitives import rlp
from ophion.primitives.types import Hash32

if TYPE_CHECKING:
    from ophion.consensus.bft.signatures import DigestSigner

log = logging.getLogger(__name__)

NAME: Final = "vid"
_PROOF: Final = 0
_LINKS: Final = 1
_MAX_PROOF_BYTES: Final = 69
"""Size limit in bytes of a proof: an RLP list with one signature of 65 bytes."""
_SENDERS: Final = 2
MAX_SENDERS_BYTES: Final = 64 * 1024
"""Size limit in bytes of a message with senders. The transactions themselves take several times as many bytes."""
_LINKS_VERSION: Final = 2
"""First version of vid in which nodes report to which validators they are connected."""
_SENDERS_VERSION: Final = 3
"""First version of vid in which validators name the senders of transactions."""
_DOMAIN: Final = b"ophion validator node"


def identity_digest(genesis: Hash32, node_id: bytes) -> Hash32:
    """Return the hash that a validator key signs to prove that a node acts for the validator. The proof is valid on
    this chain only.
    """
    return keccak256(_DOMAIN + genesis + node_id)


class IdentityProtocol:
    """The sub-protocol vid. All nodes of a BFT network offer vid; nodes with a separate validator key send a proof."""

    def __init__(
        self, validators: Validators, genesis: Hash32, node_id: bytes, validator_key: DigestSigner | None
    ) -> None:
        self.validators = validators
        self.genesis = genesis
        self.senders_named: Callable[[Peer, bytes], None] = lambda peer, senders: None
        """Called with the senders that a peer names for its next Transactions message."""
        names = ("proof", "links", "senders")
        limits = (_MAX_PROOF_BYTES, MAX_REPORT_BYTES, MAX_SENDERS_BYTES)
        # each version adds one message to those of the earlier versions
        self.capabilities: Sequence[Capability] = tuple(
            Capability(NAME, version, version, names[:version], dict(enumerate(limits[:version])))
            for version in (1, _LINKS_VERSION, _SENDERS_VERSION)
        )
        self._proof: bytes | None = None
        if validator_key is not None:
            self._proof = rlp.encode([validator_key.sign(identity_digest(genesis, node_id))])

    def attach(self, peer: Peer, version: int) -> IdentityPeer:
        """Start the protocol on a connection and send the proof."""
        if self._proof is not None:
            peer.send(NAME, _PROOF, self._proof)
        if version >= _LINKS_VERSION:
            self.validators.links.attach(peer, lambda report: peer.send(NAME, _LINKS, report))
        return IdentityPeer(peer, self)

    def name_senders(self, peer: Peer, senders: bytes) -> None:
        """Name the senders of the transactions in the next Transactions message, if the peer speaks vid/3 and the
        message is not too long. `senders` has the addresses, one after the other.
        """
        if (peer.version(NAME) or 0) >= _SENDERS_VERSION and len(senders) <= MAX_SENDERS_BYTES:
            peer.send(NAME, _SENDERS, senders, may_drop=True)


class IdentityPeer:
    """The sub-protocol vid (any version) on one connection."""

    def __init__(self, peer: Peer, protocol: IdentityProtocol) -> None:
        self._peer = peer
        self._protocol = protocol
        self._has_proof = False

    def received(self, code: int, payload: bytes) -> None:
        """Handle a proof of a validator key, a report of connections or the named senders. A proof assigns the peer to
        the validator that signed its node id.
        """
        peer, protocol = self._peer, self._protocol
        if code == _LINKS:
            protocol.validators.links.received(peer, payload)
            return
        if code == _SENDERS:
            protocol.senders_named(peer, payload)
            return
        if self._has_proof:
            # accept one proof per connection, because each proof costs a signature recovery on the event loop
            raise PeerMisbehaved(DisconnectReason.BREACH, "second proof of a validator key")
        self._has_proof = True
        items = rlp.decode_list(payload)
        signature = items[0] if len(items) == 1 else None
        validator = None
        if isinstance(signature, bytes):
            validator = message_author(identity_digest(protocol.genesis, peer.id), signature)
        if validator is None:
            raise PeerMisbehaved(DisconnectReason.BREACH, "the proof of a validator key is not a signature")
        log.debug("peer acts for a validator enode=%s validator=0x%s", peer.enode, validator.hex())
        protocol.validators.identified(peer, validator)

    def oversized(self, code: int, size: int) -> None:
        """Disconnect a peer that sends an oversized message, because proofs and reports are small."""
        raise PeerMisbehaved(DisconnectReason.BREACH, f"{NAME} message {code} of {size} bytes")

    def closed(self) -> None:
        """Drop the reports of the peer and free its slot. Each validator has `MAX_NODES` slots for connected nodes."""
        self._protocol.validators.links.detach(self._peer)
        self._protocol.validators.released(self._peer)

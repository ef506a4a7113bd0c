"""Creates and signs this validator's own messages."""

from __future__ import annotations

from typing import TypeAlias

from ophion.consensus.bft.client_profiles import WireProfile
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.messages import Commit, Prepare, PreparedRound, Proposal, ProposedBlock, RoundChange
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.round_change import Certificate
from ophion.consensus.bft.signatures import DigestSigner, message_author
from ophion.consensus.bft.signed_parts import candidate_in_round
from ophion.primitives.types import Address, Hash32, Signature

BftProtocol: TypeAlias = "Ibft2 | Qbft"
"""Type of a protocol: IBFT 2.0 or QBFT."""


class KeyMessageFactory:
    """Signs messages of one protocol with one key. Implements `protocol.MessageFactory`."""

    __slots__ = ("_protocol", "_signer", "address", "hides_round", "profile")

    def __init__(self, protocol: BftProtocol, signer: DigestSigner, profile: WireProfile = WireProfile.CLASSIC) -> None:
        self.address = signer.address
        self.profile = profile
        """Wire profile of own proposals and round changes. The profile may change between heights, but not within a
        height.
        """
        self.hides_round = False
        """Whether proposed blocks always contain round 0. QBFT networks with GoQuorum need this."""
        self._protocol = protocol
        self._signer = signer

    def proposal(self, height: int, round_number: int, block: ProposedBlock, why: Certificate | None) -> Proposal:
        if self.hides_round and block.round > 0 and not self._protocol.binds_round:
            block = self.with_round(block, 0)
        return self._protocol.write_proposal(height, round_number, block, why, self.profile, self._signer)

    def prepare(self, height: int, round_number: int, digest: Hash32) -> Prepare:
        return self._protocol.signed_parts().write_prepare(height, round_number, digest, self._signer)

    def commit(self, height: int, round_number: int, digest: Hash32, seal_hash: Hash32) -> Commit:
        return self._protocol.signed_parts().write_commit(height, round_number, digest, seal_hash, self._signer)

    def round_change(self, height: int, round_number: int, prepared: PreparedRound | None) -> RoundChange:
        return self._protocol.write_round_change(height, round_number, prepared, self.profile, self._signer)

    def with_round(self, block: ProposedBlock, round_number: int) -> ProposedBlock:
        return candidate_in_round(self._protocol, block, round_number)

    def seal_author(self, seal_hash: Hash32, seal: Signature) -> Address | None:
        return message_author(seal_hash, seal)

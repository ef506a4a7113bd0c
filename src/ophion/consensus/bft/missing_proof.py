"""`MissingProof`: finds a proof of preparation that the vote record of this key names and this node lacks.

Another node with this key has sent or stored a commit in a round, and may have stopped since. Each later round change
of the key must carry the proof of that round or of a later one (`VoteRecord`). The shared vote store holds the proof if
its block is small, and the round changes of other validators carry such proofs.

Why this node may use the proof of another validator: the proof consists of signed prepares of a quorum, and no rule
depends on who collected them. `ProtocolRules.check_round_change` has checked these signatures. A proof of the same
round is for the same block, because two quorums share an honest validator. A proof of a later round is for the same
block too, if a quorum committed that block (`Height`, steps 2 and 3). If no quorum committed it, any valid proof is
safe.
"""

from __future__ import annotations

from ophion.consensus.bft.messages import PreparedClaim, PreparedRound, RoundChange, SignedRoundChange
from ophion.consensus.bft.vote_record import NOT_PREPARED, VoteRecord
from ophion.primitives.types import Address


class MissingProof:
    """The latest proof that arrived at one height, and the proof that the vote record names."""

    def __init__(self) -> None:
        self._latest: PreparedRound | None = None
        self._needed: VoteRecord | None = None

    def add(self, proof: PreparedRound | None) -> None:
        """Keep a valid proof, unless a later one is known."""
        if proof is not None and proof.round > round_of(self._latest):
            self._latest = proof

    def need(self, stored: VoteRecord) -> None:
        """Note the stored record, which names the proof that a round change must carry."""
        if self._needed is None or stored.prepared_round > self._needed.prepared_round:
            self._needed = stored

    def found(self, own: PreparedRound | None, current: int) -> PreparedRound | None:
        """Return a proof for a round change to round `current`, or None if `own` suffices or no known proof fits."""
        needed, latest = self._needed, self._latest
        if needed is None or latest is None or not round_of(own) < needed.prepared_round <= latest.round < current:
            return None
        if latest.round == needed.prepared_round and latest.digest != needed.prepared:
            return None
        return latest

    def __len__(self) -> int:
        return int(self._latest is not None)


def round_of(proof: PreparedRound | None) -> int:
    """Return the round of a proof, or `NOT_PREPARED`."""
    return NOT_PREPARED if proof is None else proof.round


def proof_of(message: RoundChange) -> PreparedRound | None:
    """Return the proof that a checked round change carries, if any."""
    claim, block = message.signed.claim, message.block
    if claim is None or block is None:
        return None
    return PreparedRound(claim.round, block, message.prepares or claim.prepares, claim.proposal)


def unsigned_round_change(proof: PreparedRound, height: int, author: Address) -> RoundChange:
    """Return a round change with this proof, which the rules of both protocols can check."""
    claim = PreparedClaim(proof.round, proof.digest, proof.proposal, proof.prepares)
    return RoundChange(SignedRoundChange(height, proof.round + 1, claim, author), proof.block, proof.prepares)

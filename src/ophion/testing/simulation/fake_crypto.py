"""Fake blocks, keys and signatures, so that thousands of networks run in a minute.

State machine and rules are real; only expensive parts are replaced. A fake block has a few bytes. Its digest is its
hash with the round in the last bytes. A seal contains its author and the sealed hash. As with real keys, no node can
sign for another, because nodes have only their own `FakeMessageFactory`.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from ophion.consensus.bft.messages import (
    Commit,
    Prepare,
    PreparedClaim,
    PreparedRound,
    Proposal,
    ProposedBlock,
    RoundChange,
    SignedProposal,
    SignedRoundChange,
)
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.round_change import Certificate
from ophion.consensus.engine import Vote
from ophion.primitives.types import ADDRESS_LENGTH, HASH_LENGTH, Address, Hash32, Signature

_ROUND_BYTES: Final = 4
_NUMBER_BYTES: Final = 8
_SEAL_MARK: Final = b"seal"
_OTHER_BODY: Final = b"body of another block"


def stand_in_address(index: int) -> Address:
    """Return the address of a node. Addresses sort in the order of indexes."""
    return (index + 1).to_bytes(ADDRESS_LENGTH, "big")


class Content(Struct, frozen=True):
    """Content of a fake block."""

    parent: Hash32
    timestamp: int
    nonce: int
    """Makes two blocks with otherwise equal content different."""
    is_valid: bool = True
    """Whether the execution result matches the header."""
    vote: Vote | None = None

    def encode(self) -> bytes:
        vote = b"" if self.vote is None else bytes((self.vote.authorize,)) + self.vote.target
        numbers = self.timestamp.to_bytes(_NUMBER_BYTES, "big") + self.nonce.to_bytes(_NUMBER_BYTES, "big")
        return self.parent + numbers + bytes((self.is_valid,)) + vote

    @staticmethod
    def decode(encoded: bytes) -> Content:
        at = HASH_LENGTH
        encoded = encoded.split(_OTHER_BODY)[0]
        vote = encoded[at + 2 * _NUMBER_BYTES + 1 :]
        return Content(
            encoded[:at],
            int.from_bytes(encoded[at : at + _NUMBER_BYTES], "big"),
            int.from_bytes(encoded[at + _NUMBER_BYTES : at + 2 * _NUMBER_BYTES], "big"),
            bool(encoded[at + 2 * _NUMBER_BYTES]),
            Vote(vote[1:], bool(vote[0])) if vote else None,
        )


def stand_in_block(height: int, builder: Address, content: Content, round_number: int = 0) -> ProposedBlock:
    """Return a block with its hash, as a proposal of a round."""
    encoded = content.encode()
    identity = blake2b(height.to_bytes(_NUMBER_BYTES, "big") + builder + encoded, digest_size=HASH_LENGTH).digest()
    block_hash = identity[:-_ROUND_BYTES] + bytes(_ROUND_BYTES)
    return ProposedBlock(height, round_number, builder, _digest(block_hash, round_number), block_hash, encoded)


def with_other_body(block: ProposedBlock) -> ProposedBlock:
    """Return the block with a body that does not match its header; digest and hash stay."""
    return replace(block, encoded=block.encoded + _OTHER_BODY)


def has_other_body(block: ProposedBlock) -> bool:
    """Return whether the body of a block does not match its header."""
    return block.encoded.endswith(_OTHER_BODY)


def stand_in_seal(author: Address, seal_hash: Hash32) -> Signature:
    """Return the seal of an author. Nodes call this only through their own message factory."""
    return _SEAL_MARK + author + seal_hash


def stand_in_seal_author(seal_hash: Hash32, seal: Signature) -> Address | None:
    """Return the author of a seal. None if the seal is invalid or seals another hash."""
    if seal[:4] != _SEAL_MARK or seal[4 + ADDRESS_LENGTH :] != seal_hash:
        return None
    return seal[4 : 4 + ADDRESS_LENGTH]


def _digest(block_hash: Hash32, round_number: int) -> Hash32:
    return block_hash[:-_ROUND_BYTES] + round_number.to_bytes(_ROUND_BYTES, "big")


class FakeMessageFactory:
    """Creates the messages of one node, with fake signatures."""

    __slots__ = ("_certifies_proposal", "address")

    def __init__(self, address: Address, rules: ProtocolRules) -> None:
        self.address = address
        self._certifies_proposal = rules.certifies_proposal

    def proposal(self, height: int, round_number: int, block: ProposedBlock, why: Certificate | None) -> Proposal:
        if self._certifies_proposal:
            changes = why.round_changes if why is not None else None
            prepares: tuple[Prepare, ...] = ()
        else:
            changes = why.round_changes if why is not None else ()
            prepares = why.prepares if why is not None else ()
        signed = SignedProposal(height, round_number, block.digest, self.address)
        return Proposal(signed, block, changes, prepares, self._fingerprint(b"P", height, round_number, block.digest))

    def prepare(self, height: int, round_number: int, digest: Hash32) -> Prepare:
        return Prepare(
            height, round_number, digest, self.address, self._fingerprint(b"p", height, round_number, digest)
        )

    def commit(self, height: int, round_number: int, digest: Hash32, seal_hash: Hash32) -> Commit:
        seal = stand_in_seal(self.address, seal_hash)
        mark = self._fingerprint(b"c", height, round_number, digest)
        return Commit(height, round_number, digest, seal, self.address, mark)

    def round_change(self, height: int, round_number: int, prepared: PreparedRound | None) -> RoundChange:
        claim, block = None, None
        prepares: tuple[Prepare, ...] = ()
        if prepared is not None:
            block = prepared.block
            if self._certifies_proposal:
                claim = PreparedClaim(prepared.round, prepared.digest, prepared.proposal, prepared.prepares)
            else:
                claim = PreparedClaim(prepared.round, prepared.digest)
                prepares = prepared.prepares
        signed = SignedRoundChange(height, round_number, claim, self.address)
        mark = self._fingerprint(b"R", height, round_number, prepared.digest if prepared is not None else b"")
        return RoundChange(signed, block, prepares, mark)

    def with_round(self, block: ProposedBlock, round_number: int) -> ProposedBlock:
        digest = _digest(block.hash, round_number)
        return ProposedBlock(block.height, round_number, block.builder, digest, block.hash, block.encoded)

    def seal_author(self, seal_hash: Hash32, seal: Signature) -> Address | None:
        return stand_in_seal_author(seal_hash, seal)

    def _fingerprint(self, kind: bytes, height: int, round_number: int, digest: bytes) -> bytes:
        """Return a fingerprint. Equal statements have equal fingerprints, as with deterministic signatures."""
        return b"%b%b%d/%d/%b" % (self.address, kind, height, round_number, digest)

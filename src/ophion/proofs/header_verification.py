"""Verifies headers of a proof, from the trusted validators on.

The headers of a bundle are not consecutive: the bundle leaves out headers without votes, because they do not change the
validators. Each accepted header must have valid seals of the validators of its height: of a quorum under IBFT 2.0 and
QBFT, of one signer under Clique.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.signatures import seal_author
from ophion.consensus.bft.validator_set import quorum_of
from ophion.consensus.clique import SEAL, CliqueEngine
from ophion.consensus.clique_snapshot import Snapshot
from ophion.consensus.engine import Vote
from ophion.consensus.validator_votes import Tally
from ophion.errors import DecodeError, InvalidHeader, ProofError
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address
from ophion.proofs.trust_anchor import TrustAnchor
from ophion.proofs.vote_headers import bft_eras, validator_overrides

ADD_NONCE = b"\xff" * 8


class SealVerifier(Protocol):
    """Verifies the seals of headers in ascending order."""

    number: int
    """Number of the last accepted block."""

    @property
    def validators(self) -> tuple[Address, ...]:
        """Validators after the last accepted block."""

    def restarts_at(self, number: int) -> bool:
        """Whether all open votes are discarded after this block."""

    def accept(self, header: Header) -> tuple[HashedHeader, tuple[Address, ...]]:
        """Return the hashed header and the authors of its seals. Raises `ProofError` if a rule is broken."""


def decode_header(raw: bytes, what: str) -> Header:
    """Decode a header. Raises `ProofError` if it is malformed or not canonical."""
    try:
        header = Header.decode(raw)
    except DecodeError as error:
        raise ProofError(f"{what}: {error}") from error
    if header.encode() != raw:
        raise ProofError(f"{what}: the header is not in canonical RLP")
    return header


def seal_verifier(trust: TrustAnchor) -> SealVerifier:
    """Return the seal verifier for the consensus protocol of the trusted network."""
    engine = trust.engine
    return BftSeals(trust, engine) if isinstance(engine, BftEngine) else CliqueSeals(trust, engine)


class BftSeals:
    """Verifies the seals of IBFT 2.0 and QBFT headers. Implements `SealVerifier`."""

    def __init__(self, trust: TrustAnchor, engine: BftEngine) -> None:
        self.number = trust.number
        self._engine = engine
        self._eras = bft_eras(engine)
        self._overrides = validator_overrides(trust.spec, engine)
        self._tally = Tally.of(self._overrides.get(self.number + 1, trust.validators))

    @property
    def validators(self) -> tuple[Address, ...]:
        """Validators after the last accepted block."""
        return self._tally.validators

    def restarts_at(self, number: int) -> bool:
        """Whether the block is an epoch block."""
        return self._engine.schedule.era_after(number).is_epoch(number)

    def accept(self, header: Header) -> tuple[HashedHeader, tuple[Address, ...]]:
        """Check validators, proposer and seals of a header, then count its vote."""
        number = header.number
        _check_order(number, self.number)
        self._skip_to(number)
        try:
            extra = self._engine.validators.extra(header)
        except InvalidHeader as error:
            raise ProofError(f"header {number}: {error}") from error
        if self._engine.attach(header, extra.seals).extra_data != header.extra_data:
            raise ProofError(f"header {number}: the extra data is not in canonical form")
        if not extra.validators:
            raise ProofError(
                f"header {number}: a contract names the validators, so the header lists none. Use a checkpoint with the"
                " hash of the proven block."
            )
        if extra.validators != self.validators:
            raise ProofError(
                f"header {number}: it lists the validators {_text(extra.validators)} but the votes lead to"
                f" {_text(self.validators)}"
            )
        if header.coinbase not in self.validators:
            raise ProofError(f"header {number}: the proposer 0x{header.coinbase.hex()} is not a validator")
        authors = self._sealers(header, extra.seals)
        self.number = number
        if number + 1 in self._overrides:
            self._tally = Tally.of(self._overrides[number + 1])
        if self.restarts_at(number):
            self._tally = Tally.of(self.validators)
        elif extra.vote is not None:
            self._tally = self._tally.apply(header.coinbase, extra.vote)
        return self._engine.hashed(header), authors

    def _skip_to(self, number: int) -> None:
        """Apply the transitions and epochs between the last accepted header and block `number`."""
        passed = [block for block in sorted(self._overrides) if self.number + 1 < block <= number]
        if passed:
            self._tally = Tally.of(self._overrides[passed[-1]])
        elif any(self.restarts_at(block) for block in self._restarts(self.number + 1, number - 1)):
            self._tally = Tally.of(self.validators)

    def _restarts(self, first: int, last: int) -> list[int]:
        """Return blocks of a range at which votes restart: for each era, the block before the era, and the last epoch
        block of the era.
        """
        found = []
        for era in self._eras:
            start = max(era.first - 1, 0)
            length = era.parameters.epoch_length
            found += [block for block in (start, last - (last - start) % length) if first <= block <= last]
        return found

    def _sealers(self, header: Header, seals: tuple[bytes, ...]) -> tuple[Address, ...]:
        digest = self._engine.signing_hash(header)
        authors: list[Address] = []
        for position, seal in enumerate(seals):
            author = seal_author(digest, seal)
            if author is None or author not in self.validators:
                raise ProofError(f"header {header.number}: seal {position} is not the signature of a validator")
            if author in authors:
                raise ProofError(f"header {header.number}: two seals of the validator 0x{author.hex()}")
            authors.append(author)
        needed = quorum_of(len(self.validators))
        if len(authors) < needed:
            raise ProofError(f"header {header.number}: {len(authors)} seals of at least {needed}")
        return tuple(authors)


class CliqueSeals:
    """Verifies the seals of Clique headers. Implements `SealVerifier`."""

    def __init__(self, trust: TrustAnchor, engine: CliqueEngine) -> None:
        self.number = trust.number
        self._engine = engine
        self._epoch = 1 if trust.spec.clique is None else trust.spec.clique.epoch_length
        self._snapshot = Snapshot(trust.number, trust.validators)

    @property
    def validators(self) -> tuple[Address, ...]:
        """Signers after the last accepted block."""
        return self._snapshot.signers

    def restarts_at(self, number: int) -> bool:
        """Whether the block is an epoch block."""
        return number % self._epoch == 0

    def accept(self, header: Header) -> tuple[HashedHeader, tuple[Address, ...]]:
        """Check the signer of a header, then count its vote."""
        number = header.number
        _check_order(number, self.number)
        if (number - 1) // self._epoch > self.number // self._epoch:
            self._snapshot = replace(self._snapshot, votes=())
        if header.nonce not in (ADD_NONCE, bytes(8)) or header.extra_data[-1:] not in (b"\0", b"\1"):
            raise ProofError(f"header {number}: the nonce or the seal is malformed")
        if len(header.extra_data) < SEAL:
            raise ProofError(f"header {number}: the extra data has no seal")
        hashed = self._engine.hashed(header)
        vote = Vote(header.coinbase, header.nonce == ADD_NONCE)
        try:
            author = self._engine.author(hashed)
            self._snapshot = self._snapshot.apply(number, author, vote, self.restarts_at(number))
        except InvalidHeader as error:
            raise ProofError(f"header {number}: {error}") from error
        self.number = number
        return hashed, (author,)


def _check_order(number: int, last: int) -> None:
    if number <= last:
        raise ProofError(f"header {number}: it does not follow header {last}")


def _text(addresses: tuple[Address, ...]) -> str:
    return ", ".join("0x" + address.hex() for address in addresses)

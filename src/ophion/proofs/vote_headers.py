"""Selects the headers that prove how the validators changed between the genesis block and a block.

Each epoch block discards all open votes. So a part of the chain between two epoch blocks needs no headers if the
validators at both ends are the same. Otherwise the part needs all its headers with votes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from ophion.chain.chain import Chain
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.bft.bft_schedule import ProtocolEra
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.clique import CliqueEngine
from ophion.errors import ProofError, StorageError
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import ZERO_ADDRESS, Address

MAX_VOTE_HEADERS: Final = 10_000
"""Limit of vote headers in one bundle: several thousand changes of validators."""
_FAR_BLOCK: Final = 2**62
_HEADERS_PER_STEP: Final = 64
"""Number of headers to read before other threads may run."""


class VoteReader(Protocol):
    """Reads votes and validators of one consensus protocol."""

    def restarts(self, last: int) -> list[int]:
        """Return the blocks up to `last` after which all open votes are discarded, in ascending order."""

    def validators(self, header: HashedHeader) -> tuple[Address, ...]:
        """Return the validators that may produce this block."""

    def has_vote(self, header: Header) -> bool:
        """Whether the block votes on a validator."""

    def replaces_validators(self, number: int) -> bool:
        """Whether the configuration names new validators after this block."""


class BftVotes:
    """Reads votes and validators of IBFT 2.0 and QBFT. Implements `VoteReader`."""

    def __init__(self, chain: Chain, engine: BftEngine) -> None:
        self._engine = engine
        self._eras = bft_eras(engine)
        self._overrides = {number - 1 for number in validator_overrides(chain.spec, engine)}

    def restarts(self, last: int) -> list[int]:
        """Return epoch blocks, and the blocks before a transition that names validators."""
        found = {number for number in self._overrides if 0 <= number <= last}
        ends = [era.first - 1 for era in self._eras[1:]] + [last + 1]
        for era, end in zip(self._eras, ends, strict=True):
            found.update(range(max(era.first - 1, 0), min(end, last + 1), era.parameters.epoch_length))
        return sorted(found)

    def validators(self, header: HashedHeader) -> tuple[Address, ...]:
        """Return the validators in the header; none in contract mode."""
        return self._engine.validators.extra(header.header).validators

    def has_vote(self, header: Header) -> bool:
        """Whether the extra data has a vote."""
        return self._engine.validators.extra(header).vote is not None

    def replaces_validators(self, number: int) -> bool:
        """Whether a transition names validators from the next block on."""
        return number in self._overrides


class CliqueVotes:
    """Reads votes and signers of Clique. Implements `VoteReader`."""

    def __init__(self, chain: Chain, engine: CliqueEngine) -> None:
        self._chain = chain
        self._engine = engine
        self._epoch = 1 if chain.spec.clique is None else chain.spec.clique.epoch_length

    def restarts(self, last: int) -> list[int]:
        """Return the epoch blocks up to `last`."""
        return list(range(0, last + 1, self._epoch))

    def validators(self, header: HashedHeader) -> tuple[Address, ...]:
        """Return the signers after the parent block, who may sign this block."""
        parent = self._chain.header(header.header.parent_hash)
        if parent is None:
            raise StorageError(f"Block {header.number - 1} is missing from the database; run `ophion storage check`.")
        return self._engine.members(parent, self._chain)

    def has_vote(self, header: Header) -> bool:
        """Whether the header votes on a signer: its coinbase is not zero."""
        return header.coinbase != ZERO_ADDRESS

    def replaces_validators(self, number: int) -> bool:
        """Return False, because Clique has no transitions that name signers."""
        return False


def bft_eras(engine: BftEngine) -> list[ProtocolEra]:
    """Return the block range of each BFT protocol of the chain, in ascending order."""
    eras = [engine.schedule.era(0)]
    later = engine.schedule.era(_FAR_BLOCK)
    return eras if later.first == 0 else [*eras, later]


def validator_overrides(spec: ChainSpec, engine: BftEngine) -> dict[int, tuple[Address, ...]]:
    """Return the validators that transitions set, by the number of the first block with these validators."""
    found = {}
    for era in bft_eras(engine):
        for transition in era.parameters.transitions:
            at = transition.block
            if transition.validators is None or (at < era.first and at != 0):
                continue
            if spec.forks.counts_time(at):
                raise ProofError(f"The transition at time {at} names validators; proofs support transitions by number.")
            found[max(at, 1)] = transition.validators
    return found


def votes_of(chain: Chain) -> VoteReader:
    """Return the vote reader of a chain's consensus protocol. Raises `ProofError` if the protocol has no validators."""
    engine = chain.engine
    if isinstance(engine, BftEngine):
        return BftVotes(chain, engine)
    if isinstance(engine, CliqueEngine):
        return CliqueVotes(chain, engine)
    raise ProofError(f"Blocks of {engine.name} have no validators' seals; proofs need IBFT 2.0, QBFT or Clique.")


def vote_headers(chain: Chain, target: HashedHeader, is_stopped: Callable[[], bool] = lambda: False) -> list[Header]:
    """Return the headers with votes that lead from the genesis validators to the validators of `target`.

    May read all headers of the chain. Raises `ProofError` soon after `is_stopped` returns True.
    """
    votes = votes_of(chain)
    found: list[Header] = []
    starts = votes.restarts(target.number - 1)
    for start, end in zip(starts, [*starts[1:], target.number], strict=True):
        _pause(is_stopped)
        if votes.replaces_validators(start) and votes.has_vote(canonical(chain, start).header):
            found.append(canonical(chain, start).header)
        if end == start + 1 or votes.validators(canonical(chain, start + 1)) == votes.validators(canonical(chain, end)):
            continue
        for header in _between(chain, start, end, is_stopped):
            if votes.has_vote(header):
                found.append(header)
                if len(found) > MAX_VOTE_HEADERS:
                    raise ProofError(
                        f"The validators changed too often: more than {MAX_VOTE_HEADERS} headers with votes."
                    )
    return found


def _between(chain: Chain, start: int, end: int, is_stopped: Callable[[], bool]) -> Iterator[Header]:
    for number in range(start + 1, end):
        if number % _HEADERS_PER_STEP == 0:
            _pause(is_stopped)
        yield canonical(chain, number).header


def _pause(is_stopped: Callable[[], bool]) -> None:
    """Let other threads run. Raises `ProofError` if the client no longer waits."""
    if is_stopped():
        raise ProofError("The proof was cancelled.")
    time.sleep(0)


def canonical(chain: Chain, number: int) -> HashedHeader:
    """Return a canonical header. Raises `StorageError` if the database does not have the header."""
    found = chain.canonical(number)
    if found is None:
        raise StorageError(f"Block {number} is missing from the database; run `ophion storage check`.")
    return found

"""The validators of the next block: by votes in headers, by transition or by contract.

The tally is computed header by header. The count restarts at each epoch block, whose header lists the validators and
has no votes (consensus.md 2.12).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ophion.consensus.bft.bft_schedule import BftSchedule
from ophion.consensus.bft.extra_data import BftExtraData
from ophion.consensus.engine import HeaderReader
from ophion.consensus.header_snapshots import HeaderSnapshots
from ophion.consensus.validator_votes import Tally
from ophion.errors import DecodeError, InvalidHeader
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import ADDRESS_LENGTH, Address, Hash32

GET_VALIDATORS: Final = bytes.fromhex("b7ab4db5")
"""Call data of `getValidators()`, which returns `address[]`."""

ContractReader: TypeAlias = Callable[[HashedHeader, Address], Sequence[Address]]
"""Calls the validator contract in the state after a block. Raises `OphionError` if the call fails."""

MembersAfter: TypeAlias = Callable[[HashedHeader, HeaderReader], tuple[Address, ...]]
"""Returns the validators or signers that may produce the block after a header."""

_EXTRAS_KEPT: Final = 512
_WITHOUT_VOTE_KEPT: Final = 2048
_WORD: Final = 32


class ValidatorProvider:
    """Provides the validators of one network by block."""

    def __init__(self, schedule: BftSchedule) -> None:
        self.contract_reader: ContractReader | None = None
        """Calls the validator contract. A node without this reader cannot follow a network in contract mode."""
        self.predecessor: MembersAfter | None = None
        """Returns the signers after a Clique block. Only a chain that began with Clique sets this function."""
        self._schedule = schedule
        self._tallies = HeaderSnapshots(self._fresh, self._applied, Tally.encode, Tally.decode)
        # cache the decoded extra data, because each header needs it several times: for its hash, its rules and its
        # seals
        self._extras: OrderedDict[tuple[int, bytes], BftExtraData] = OrderedDict()
        self._without_vote: set[Hash32] = set()
        """Hashes of recently read headers without a vote, whose extra data need not be decoded for the tally."""

    def after(self, header: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        """Return the validators of the next block, in ascending order."""
        contract = self.contract_after(header)
        if contract is not None:
            return self._ask(header, contract)
        return self.tally(header, chain).validators

    def contract_after(self, header: HashedHeader) -> Address | None:
        """Return the contract that lists the validators of the next block, if any."""
        number, timestamp = header.number, header.timestamp
        return self._schedule.settings(number + 1, self._schedule.next_timestamp(number, timestamp)).contract

    def tally(self, header: HashedHeader, chain: HeaderReader) -> Tally:
        """Return the validators and pending votes after a block, counted from votes in headers."""
        return self._tallies.after(header, chain)

    def checkpoint(self, header: HashedHeader, chain: HeaderReader) -> bytes | None:
        """Return the encoded tally after a block, or None in contract mode."""
        return self._tallies.checkpoint(header, chain) if self.contract_after(header) is None else None

    def extra(self, header: Header) -> BftExtraData:
        """Return the decoded extra data of a header. Raises `InvalidHeader` for malformed data."""
        era = self._schedule.era(header.number)
        key = (era.first, header.extra_data)
        known = self._extras.get(key)
        if known is not None:
            return known
        try:
            extra = era.protocol.decode_extra(header.extra_data)
        except DecodeError as error:
            raise InvalidHeader("extra data", str(error)) from error
        self._extras[key] = extra
        if len(self._extras) > _EXTRAS_KEPT:
            self._extras.popitem(last=False)
        return extra

    def note_without_vote(self, block_hash: Hash32) -> None:
        """Remember that the header with this hash has no vote, so that its extra data is not decoded again."""
        if len(self._without_vote) >= _WITHOUT_VOTE_KEPT:
            self._without_vote.clear()
        self._without_vote.add(block_hash)

    def _applied(self, tally: Tally, header: HashedHeader) -> Tally:
        if header.hash in self._without_vote:
            return tally
        vote = self.extra(header.header).vote
        return tally if vote is None else tally.apply(header.header.coinbase, vote)

    def _fresh(self, header: HashedHeader, chain: HeaderReader) -> Tally | None:
        """Return the new tally at a transition or epoch block, where counting restarts. Returns None for other
        blocks.
        """
        number, schedule = header.number, self._schedule
        era = schedule.era_after(number)
        is_epoch = era.is_epoch(number)
        following = schedule.next_timestamp(number, header.timestamp)
        override = schedule.override(number + 1, following, header.timestamp)
        if override is None and not is_epoch:
            return None
        if self.predecessor is not None and number < schedule.first:
            # the header is the last Clique block, which has no BFT extra data
            return Tally.of(self.predecessor(header, chain) if override is None else override)
        extra = self.extra(header.header)
        if override is None:
            return Tally.of(extra.validators)
        tally = Tally.of(override)
        # the vote in the last block before the transition applies to the new validator list (consensus.md 2.12)
        if extra.vote is not None and not is_epoch:
            tally = tally.apply(header.header.coinbase, extra.vote)
        return tally

    def _ask(self, header: HashedHeader, contract: Address) -> tuple[Address, ...]:
        if self.contract_reader is None:
            raise InvalidHeader("validators of the contract", "contracts cannot be called here", number=header.number)
        found = tuple(sorted(set(self.contract_reader(header, contract))))
        if not found:
            raise InvalidHeader("validators of the contract", f"none named by 0x{contract.hex()}", number=header.number)
        return found


def decode_addresses(output: bytes) -> tuple[Address, ...]:
    """Decode the result of `getValidators()`: one `address[]` in the contract ABI."""
    place = "validators of the contract"
    if len(output) < 2 * _WORD or int.from_bytes(output[:_WORD], "big") != _WORD:
        raise DecodeError("the answer is not a list of addresses", place)
    count = int.from_bytes(output[_WORD : 2 * _WORD], "big")
    if len(output) < (2 + count) * _WORD:
        raise DecodeError(f"the answer ends before its {count} addresses", place)
    found = []
    for position in range(2, 2 + count):
        word = output[position * _WORD : (position + 1) * _WORD]
        if any(word[: _WORD - ADDRESS_LENGTH]):
            raise DecodeError(f"entry {position - 2} is not an address", place)
        found.append(word[_WORD - ADDRESS_LENGTH :])
    return tuple(found)

"""`Engine` for IBFT 2.0 and QBFT: hashing, header rules and validators, shared by both protocols.

Sealed headers are checked with the full rules, proposals with the light rules, which skip the seals (consensus.md 2.4).
Imported blocks are final, so fork choice only extends the head.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, TypeAlias

from msgspec.structs import replace

from ophion.chainspec.consensus_parameters import BFT_MIX_HASH, HeaderForm
from ophion.chainspec.spec import ChainSpec
from ophion.consensus import header_rules as rules
from ophion.consensus.bft.bft_schedule import BftSchedule, BlockSettings
from ophion.consensus.bft.events import Head, NewHead
from ophion.consensus.bft.extra_data import BftExtraData, ExtraForm, own_vanity
from ophion.consensus.bft.message_buffer import MessageLimits
from ophion.consensus.bft.message_factory import BftProtocol
from ophion.consensus.bft.messages import ProposedBlock
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.signatures import seal_author
from ophion.consensus.bft.signed_parts import MAX_BLOCK_ITEMS, candidate_in_round, header_digest
from ophion.consensus.bft.validator_provider import ValidatorProvider
from ophion.consensus.bft.validator_set import quorum_of
from ophion.consensus.bft_header_form import check_form, in_form, next_form
from ophion.consensus.engine import BlockPreferences, Finality, HeaderReader, Tip, Vote
from ophion.consensus.header_template import unsealed_header
from ophion.consensus.validator_votes import LocalProposals
from ophion.errors import DecodeError, GenesisError, InvalidBlock, InvalidHeader
from ophion.native.crypto import bft_block_hash, keccak256, recover_addresses
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import ZERO_HASH, ZERO_NONCE, Address, Hash32, Signature

DIFFICULTY: Final = 1
FUTURE_LEAD_S: Final = 1
DEFAULT_MAX_TIMEOUT_S: Final = 60.0
_MAX_CACHED_SEALERS: Final = 2560
"""Maximum number of headers whose sealers are cached: 512 more than synchronisation holds before import."""
_MAX_SEALS_AHEAD: Final = 20_000
"""Maximum number of seals recovered per batch of headers. Recovering this many takes some tenths of a second."""

SealAuthor: TypeAlias = Callable[[Hash32, Signature], "Address | None"]


class BftEngine:
    """The rules of one IBFT 2.0 or QBFT network."""

    finality = Finality.IMMEDIATE

    def __init__(self, spec: ChainSpec, recover_seal: SealAuthor = seal_author) -> None:
        self._spec = spec
        self._recover_seal = recover_seal
        self.schedule = BftSchedule(spec)
        self.validators = ValidatorProvider(self.schedule)
        # cache recovered sealers, because a gossiped header is verified twice. The key includes the extra data, because
        # the hash does not cover the seals.
        self._sealers: OrderedDict[tuple[Hash32, bytes], tuple[Address | None, ...]] = OrderedDict()

    @property
    def name(self) -> str:
        """Protocol of the first block: IBFT 2.0 or QBFT."""
        return self.schedule.era(self.schedule.first).protocol.name

    def protocol(self, number: int) -> BftProtocol:
        """Return the protocol of a block. Messages about the block use the same protocol."""
        return self.schedule.era(number).protocol

    # --- header contents ------------------------------------------------------------------------

    def hashed(self, header: Header, encoded: bytes | None = None) -> HashedHeader:
        """Hash the header without round and seals. Only the genesis header is hashed in full."""
        if header.number == 0:
            return HashedHeader(header, keccak256(header.encode()))
        if encoded is not None:
            # `bft_block_hash` is the fast path of `_digest`. Malformed seals do not matter here, because the hash does
            # not cover the seals; `verify` reports malformed seals.
            found = bft_block_hash(encoded, isinstance(self.protocol(header.number), Qbft))
            if found is not None:
                self.validators.note_without_vote(found)
                return HashedHeader(header, found)
        return HashedHeader(header, self._digest(header, ExtraForm.FOR_HASH))

    def author(self, header: HashedHeader) -> Address:
        """Return the validator that built the block."""
        return header.header.coinbase

    def beneficiary(self, header: HashedHeader) -> Address:
        """Return the beneficiary that the genesis file configures, or else the validator that built the block."""
        return self._settings(header.header).beneficiary or header.header.coinbase

    def rewards(self, header: HashedHeader, ommers: Sequence[Header]) -> list[tuple[Address, int]]:
        """Return the configured block reward, if any."""
        reward = self._settings(header.header).reward_wei
        return [(self.beneficiary(header), reward)] if reward else []

    def members(self, after: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        """Return the validators of the next block."""
        return self.validators.after(after, chain)

    def checkpoint(self, header: HashedHeader, chain: HeaderReader) -> bytes | None:
        """Return the encoded vote tally after a block, or None in contract mode."""
        return self.validators.checkpoint(header, chain)

    def validators_of(self, header: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        """Return the validators that decided this block, as listed in its header. For a Clique block, return the
        signers that could produce it.

        In contract mode the header lists no validators, so the contract's state at that block is read (consensus.md
        4.1).
        """
        predecessor = self.validators.predecessor
        if predecessor is not None and 0 < header.number < self.schedule.first:
            parent = chain.header(header.parent_hash)
            return () if parent is None else predecessor(parent, chain)
        listed = self.validators.extra(header.header).validators
        if not listed and self._settings(header.header).contract is not None:
            return self.validators.after(header, chain)
        return listed

    def has_votes(self, after: HashedHeader) -> bool:
        """Whether the next block may carry a vote. In contract mode no block carries votes."""
        return self.validators.contract_after(after) is None

    def next_vote(
        self, parent: HashedHeader, author: Address, proposals: LocalProposals, chain: HeaderReader
    ) -> Vote | None:
        """Return the vote that `author` should put into the block after `parent`."""
        if not self.has_votes(parent):
            return None
        tally = self.validators.tally(parent, chain)
        return proposals.next_vote(lambda vote: tally.is_useful(author, vote))

    # --- rules ----------------------------------------------------------------------------------

    def check_genesis(self, header: Header) -> None:
        """Check that the extra data is well-formed and lists no validator twice.

        Without a validator contract, it must list at least one validator.
        """
        try:
            validators = self.protocol(0).decode_extra(header.extra_data).validators
        except DecodeError as error:
            raise _bad_genesis(header, f"not the extra data of a {self.name} network: {error}") from error
        if len(set(validators)) != len(validators):
            raise _bad_genesis(header, "a validator is listed twice")
        if not validators and self.schedule.settings(1, header.timestamp).contract is None:
            raise _bad_genesis(header, f"a {self.name} network needs at least one validator")

    def verify(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Check a sealed header with the full rules."""
        validators = self._verify_light(header, parent, chain)
        self._check_seals(header, validators)
        # check the timestamp last, so that a timestamp error means that validators have sealed the block
        rules.check_not_future(header.header, now, FUTURE_LEAD_S)

    def verify_proposal(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Check the header of a proposal with the light rules, which skip the seals."""
        self._verify_light(header, parent, chain)
        rules.check_not_future(header.header, now, FUTURE_LEAD_S)

    def _verify_light(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        block, before = header.header, parent.header
        settings = self._settings(block)
        fork = self._spec.fork_of(block)
        rules.check_parent(block, parent)
        rules.check_gas_used(block)
        rules.check_gas_limit(block, before, self._spec)
        rules.check_timestamp(block, before, settings.least_distance_s)
        self._check_constants(block)
        check_form(block, fork)
        rules.check_base_fee(block, before, self._spec)
        rules.check_blobs(block, before, fork)
        validators = self.validators.after(parent, chain)
        self._check_validators(self.validators.extra(block), settings, validators)
        if block.coinbase not in validators:
            raise InvalidHeader("coinbase", block.coinbase, "one of the validators")
        return validators

    def _check_constants(self, block: Header) -> None:
        if block.mix_hash != BFT_MIX_HASH:
            raise InvalidHeader("mix hash", block.mix_hash, BFT_MIX_HASH)
        rules.check_no_ommers(block)
        if block.difficulty != DIFFICULTY:
            raise InvalidHeader("difficulty", block.difficulty, DIFFICULTY)
        # do not check the nonce of QBFT blocks, because other QBFT clients ignore it (consensus.md 3.4)
        if block.nonce != ZERO_NONCE and not isinstance(self.protocol(block.number), Qbft):
            raise InvalidHeader("nonce", block.nonce, ZERO_NONCE)

    def _check_validators(self, extra: BftExtraData, settings: BlockSettings, validators: tuple[Address, ...]) -> None:
        if settings.contract is None:
            if extra.validators != validators:
                raise InvalidHeader("validators", _listed(extra.validators), _listed(validators))
        elif extra.validators or extra.vote is not None:
            raise InvalidHeader("validators", "listed or voted on", "neither, as a contract names them")

    def _check_seals(self, header: HashedHeader, validators: tuple[Address, ...]) -> None:
        """Check that a quorum of distinct validators has sealed the header."""
        seals = self.validators.extra(header.header).seals
        if len(seals) > len(validators):
            raise InvalidHeader("committed seals", len(seals), f"at most {len(validators)}")
        authors = set()
        for seal, author in zip(seals, self._sealers_of(header, seals), strict=True):
            if author is None or author not in validators:
                raise InvalidHeader("committed seal", seal, "a signature of a validator")
            if author in authors:
                raise InvalidHeader("committed seals", f"two of 0x{author.hex()}", "one of each validator")
            authors.add(author)
        needed = quorum_of(len(validators))
        if len(authors) < needed:
            raise InvalidHeader("committed seals", len(authors), f"at least {needed} of {len(validators)}")

    def _sealers_of(self, header: HashedHeader, seals: Sequence[Signature]) -> tuple[Address | None, ...]:
        known = self._sealers.get((header.hash, header.header.extra_data))
        if known is None:
            digest = self._digest(header.header, ExtraForm.FOR_SEAL)
            known = tuple(self._recover_seal(digest, seal) for seal in seals)
            self._keep_sealers(header, known)
        return known

    def _keep_sealers(self, header: HashedHeader, sealers: tuple[Address | None, ...]) -> None:
        self._sealers[header.hash, header.header.extra_data] = sealers
        if len(self._sealers) > _MAX_CACHED_SEALERS:
            self._sealers.popitem(last=False)

    def look_ahead(self, headers: Sequence[HashedHeader]) -> None:
        """Recover and cache the authors of commit seals before the headers are verified."""
        if self._recover_seal is not seal_author:
            return
        pairs: list[tuple[Hash32, Signature]] = []
        counted: list[tuple[HashedHeader, int]] = []
        for header in headers:
            try:
                seals = self.validators.extra(header.header).seals
                digest = self._digest(header.header, ExtraForm.FOR_SEAL)
            except InvalidHeader:
                continue  # ignore malformed extra data here, because `verify` reports it
            if len(pairs) + len(seals) > _MAX_SEALS_AHEAD:
                # stop at the limit, because a malicious peer can add any number of seals; `verify` checks the remaining
                # seals one by one
                break
            pairs.extend((digest, seal) for seal in seals)
            counted.append((header, len(seals)))
        found = iter(recover_addresses(pairs))
        for header, count in counted:
            self._keep_sealers(header, tuple(islice(found, count)))

    def unsealed(self, headers: Sequence[HashedHeader]) -> list[HashedHeader]:
        """Return the headers that lack valid seals of a quorum of the validators in their extra data. In contract mode
        a header lists no validators, so the seals are not checked.
        """
        self.look_ahead(headers)
        return [header for header in headers if not self._has_listed_seals(header)]

    def _has_listed_seals(self, header: HashedHeader) -> bool:
        try:
            listed = self.validators.extra(header.header).validators
            if listed:
                self._check_seals(header, listed)
        except InvalidHeader:
            return False
        return True

    def verify_ommers(self, header: HashedHeader, ommers: Sequence[Header], chain: HeaderReader) -> None:
        """Check that the block has no ommers."""
        if ommers:
            raise InvalidBlock("number of ommers", len(ommers), 0)

    def prefers(self, tip: Tip, head: Tip, chain: HeaderReader) -> bool:
        """Whether `tip` extends the head. Committed blocks are final, so no other block is preferred."""
        cursor: HashedHeader | None = tip.header
        while cursor is not None and cursor.number > head.header.number + 1:
            cursor = chain.header(cursor.parent_hash)
        return cursor is not None and cursor.parent_hash == head.header.hash

    # --- producing blocks -----------------------------------------------------------------------

    def prepare(self, parent: HashedHeader, preferences: BlockPreferences, chain: HeaderReader) -> Header:
        """Return a header of round 0 without seals. The header carries the vote of `preferences`, even in an epoch
        block.
        """
        number = parent.number + 1
        least = self.schedule.next_timestamp(parent.number, parent.timestamp)
        timestamp = max(preferences.timestamp, least)
        settings = self.schedule.settings(number, timestamp)
        extra = BftExtraData(
            own_vanity(preferences.extra_data),
            self.members(parent, chain) if settings.contract is None else (),
            preferences.vote if settings.contract is None else None,
        )
        preferences = replace(
            preferences, timestamp=timestamp, mix_hash=BFT_MIX_HASH, parent_beacon_block_root=ZERO_HASH
        )
        form = next_form(parent.header, self._spec.fork_of(parent.header), preferences.header_form)
        header = in_form(unsealed_header(parent, preferences, self._spec), form)
        encoded = self.protocol(number).encode_extra(extra, ExtraForm.FULL)
        return replace(header, difficulty=DIFFICULTY, extra_data=encoded)

    def candidate(self, block: bytes, round_number: int = 0) -> ProposedBlock:
        """Return a newly built block as a proposal for a round."""
        number = Header.decode(rlp.split_list(block, MAX_BLOCK_ITEMS)[0]).number
        found = self.protocol(number).candidate(block)
        return found if found.round == round_number else candidate_in_round(self.protocol(number), found, round_number)

    def signing_hash(self, header: Header) -> Hash32:
        """Return the hash that validators seal: the hash of the header with its round and without seals."""
        return self._digest(header, ExtraForm.FOR_SEAL)

    def attach(self, header: Header, seals: Sequence[Signature]) -> Header:
        """Return the header with these seals in place of its earlier seals."""
        extra = replace(self.validators.extra(header), seals=tuple(seals))
        return replace(header, extra_data=self.protocol(header.number).encode_extra(extra, ExtraForm.FULL))

    # --- for the state machine ------------------------------------------------------------------

    def new_head(
        self, header: HashedHeader, chain: HeaderReader, max_timeout_s: float = DEFAULT_MAX_TIMEOUT_S
    ) -> NewHead:
        """Return the `NewHead` event of the state machine for a new head."""
        block = header.header
        return NewHead(
            Head(block.number, header.hash, block.timestamp, block.coinbase),
            self.members(header, chain),
            self.timing(header, max_timeout_s),
            is_provisional=header.number < self.schedule.first,
        )

    def timing(self, parent: HashedHeader, max_timeout_s: float = DEFAULT_MAX_TIMEOUT_S) -> RoundTiming:
        """Return periods and timeouts of the block after `parent`."""
        number, timestamp = parent.number + 1, parent.timestamp
        parameters = self.schedule.era(number).parameters
        before = self.schedule.settings(number, timestamp)
        due = self.schedule.settings(number, timestamp + before.least_distance_s)
        # if the period changes with this block, the longer of both periods applies (consensus.md 3.5)
        period = max(before.target_period_s, due.target_period_s)
        is_qbft = isinstance(self.protocol(number), Qbft)
        return RoundTiming(
            period, float(parameters.request_timeout_s), max_timeout_s, float(due.empty_period_s) if is_qbft else 0.0
        )

    def header_form(self, number: int) -> HeaderForm | None:
        """Return the header form that the genesis file sets for blocks after Shanghai, if any."""
        return self.schedule.era(number).parameters.header_form

    def limits(self, number: int) -> MessageLimits:
        """Return the message limits that the genesis file sets for a height."""
        parameters = self.schedule.era(number).parameters
        return MessageLimits(
            parameters.message_queue_limit,
            parameters.duplicate_message_limit,
            parameters.future_messages_limit,
            parameters.future_messages_max_distance,
            parameters.gossiped_history_limit,
        )

    def _settings(self, header: Header) -> BlockSettings:
        return self.schedule.settings(header.number, header.timestamp)

    def _digest(self, header: Header, form: ExtraForm) -> Hash32:
        return header_digest(self.protocol(header.number), header, self.validators.extra(header), form)


def _listed(addresses: Sequence[Address]) -> str:
    return "[" + ", ".join(f"0x{address.hex()}" for address in addresses) + "]"


def _bad_genesis(header: Header, why: str) -> GenesisError:
    return GenesisError(
        f"Invalid extraData in genesis block configuration: 0x{header.extra_data.hex()} ({why})", "extraData"
    )

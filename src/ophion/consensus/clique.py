"""Clique, proof of authority as in EIP-225: the rules of consensus.md 1.4, checked with the parent's snapshot.

The author of a block is recovered from its seal. The coinbase is the address on which the author votes. Headers are
checked in order, because rules 8 to 11 need the signers after the parent.

The delay of an out-of-turn signer (geth calls it "wiggle") is no rule: `producer/clique_sealer.py` chooses it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ophion.chainspec.consensus_parameters import CliqueParameters
from ophion.chainspec.spec import ChainSpec
from ophion.consensus import header_rules as rules
from ophion.consensus.clique_snapshot import Snapshot
from ophion.consensus.engine import BlockPreferences, Finality, HeaderReader, Tip, Vote
from ophion.consensus.header_snapshots import HeaderSnapshots
from ophion.consensus.header_template import unsealed_header
from ophion.errors import GenesisError, InvalidBlock, InvalidHeader
from ophion.native.crypto import keccak256, recover_address, recover_addresses
from ophion.native.exceptions import NativeError
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import (
    ADDRESS_LENGTH,
    EMPTY_TRIE_ROOT,
    SIGNATURE_LENGTH,
    ZERO_ADDRESS,
    ZERO_HASH,
    ZERO_NONCE,
    Address,
    Hash32,
    Signature,
)

VANITY: Final = 32
SEAL: Final = SIGNATURE_LENGTH
IN_TURN: Final = 2
OUT_OF_TURN: Final = 1
ADD_NONCE: Final = b"\xff" * 8
DROP_NONCE: Final = ZERO_NONCE
FUTURE_LEAD_S: Final = 10
_SIGNERS_KEPT: Final = 4096


class CliqueEngine:
    """The rules of a Clique network."""

    name = "clique"
    finality = Finality.HEAVIEST

    def __init__(self, spec: ChainSpec) -> None:
        self._spec = spec
        self._parameters = spec.clique if spec.clique is not None else CliqueParameters()
        self._snapshots = HeaderSnapshots(self._fresh_snapshot, self._applied, Snapshot.encode, Snapshot.decode)
        # cache the authors: recovering an author costs more than checking all other rules, and the author of a block is
        # needed several times
        self._authors: OrderedDict[Hash32, Address] = OrderedDict()

    def hashed(self, header: Header, encoded: bytes | None = None) -> HashedHeader:
        """Hash the whole header, including the seal."""
        return HashedHeader(header, keccak256(header.encode()))

    def author(self, header: HashedHeader) -> Address:
        """Return the signer of a block. The genesis block is unsigned, so its author is the zero address."""
        if header.number == 0:
            return ZERO_ADDRESS
        known = self._authors.get(header.hash)
        if known is None:
            known = self._recover(header.header)
            self._keep_author(header.hash, known)
        return known

    def _keep_author(self, block_hash: Hash32, author: Address) -> None:
        self._authors[block_hash] = author
        if len(self._authors) > _SIGNERS_KEPT:
            self._authors.popitem(last=False)

    def look_ahead(self, headers: Sequence[HashedHeader]) -> None:
        """Recover and cache the signers before the headers are verified."""
        sealed = [header for header in headers if header.number and len(header.header.extra_data) >= VANITY + SEAL]
        seals = [(self.signing_hash(header.header), header.header.extra_data[-SEAL:]) for header in sealed]
        for header, author in zip(sealed, recover_addresses(seals), strict=True):
            if author is not None:
                self._keep_author(header.hash, author)

    def beneficiary(self, header: HashedHeader) -> Address:
        """Return the signer, who earns the fees. The coinbase is the target of a vote."""
        return self.author(header)

    def check_genesis(self, header: Header) -> None:
        """Check that the extra data lists at least one signer, without duplicates."""
        try:
            signers = _listed_signers(header)
        except InvalidHeader as error:
            raise GenesisError(
                f"Invalid extraData in genesis block configuration: 0x{header.extra_data.hex()} ({error.rule} of a "
                f"Clique network: {error.got})",
                "extraData",
            ) from error
        if not signers or len(set(signers)) != len(signers):
            raise GenesisError(
                f"Invalid extraData in genesis block configuration: 0x{header.extra_data.hex()} (a Clique network "
                "needs at least one signer, and none twice)",
                "extraData",
            )

    def verify(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Check every rule of consensus.md 1.4. Rules that need the seal come late, the check for a future timestamp
        last.
        """
        block, before = header.header, parent.header
        rules.check_parent(block, parent)
        rules.check_timestamp(block, before, self._parameters.period_at(block.number))
        self._check_constants(block)
        rules.check_gas_used(block)
        rules.check_gas_limit(block, before, self._spec)
        rules.check_tail(block, self._spec.fork_of(block))
        rules.check_base_fee(block, before, self._spec)
        if not self._parameters.creates_empty_blocks_at(block.number) and block.transactions_root == EMPTY_TRIE_ROOT:
            raise InvalidHeader("block without transactions", "empty", "at least one transaction")
        self._check_against(self._snapshots.after(parent, chain), header)
        # check the timestamp last, so that a timestamp error means that a signer has sealed the block
        rules.check_not_future(block, now, FUTURE_LEAD_S)

    def _check_constants(self, block: Header) -> None:
        if block.mix_hash != ZERO_HASH:
            raise InvalidHeader("mix hash", block.mix_hash, ZERO_HASH)
        rules.check_no_ommers(block)
        if block.nonce not in (ADD_NONCE, DROP_NONCE):
            raise InvalidHeader("nonce", block.nonce, "all ones or all zeros")
        if self._is_epoch(block.number):
            if block.coinbase != ZERO_ADDRESS:
                raise InvalidHeader("coinbase of an epoch block", block.coinbase, ZERO_ADDRESS)
            if block.nonce != DROP_NONCE:
                raise InvalidHeader("nonce of an epoch block", block.nonce, DROP_NONCE)
        elif len(block.extra_data) != VANITY + SEAL:
            raise InvalidHeader("extra data length", len(block.extra_data), VANITY + SEAL)

    def _check_against(self, snapshot: Snapshot, header: HashedHeader) -> None:
        """Check rules 8 to 11 of consensus.md 1.4 against the signers after the parent."""
        block = header.header
        if self._is_epoch(block.number):
            listed = block.extra_data[VANITY:-SEAL] if len(block.extra_data) >= VANITY + SEAL else block.extra_data
            expected = b"".join(snapshot.signers)
            if listed != expected:
                raise InvalidHeader("signers of an epoch block", listed, expected)
        after = self._applied(snapshot, header)
        difficulty = IN_TURN if snapshot.in_turn(block.number) == self.author(header) else OUT_OF_TURN
        if block.difficulty != difficulty:
            raise InvalidHeader("difficulty", block.difficulty, difficulty)
        self._snapshots.keep(header.hash, after)

    def unsealed(self, headers: Sequence[HashedHeader]) -> list[HashedHeader]:
        """Return no header, because a Clique header with another seal has another hash."""
        return []

    def verify_ommers(self, header: HashedHeader, ommers: Sequence[Header], chain: HeaderReader) -> None:
        """Check that the block has no ommers."""
        if ommers:
            raise InvalidBlock("number of ommers", len(ommers), 0)

    def rewards(self, header: HashedHeader, ommers: Sequence[Header]) -> list[tuple[Address, int]]:
        """Return no rewards, because Clique pays no block reward."""
        return []

    def prefers(self, tip: Tip, head: Tip, chain: HeaderReader) -> bool:
        """Prefer the higher total difficulty, then the shorter branch, then the block whose signer was in turn most
        recently, then the lower hash.
        """
        if tip.total_difficulty != head.total_difficulty:
            return tip.total_difficulty > head.total_difficulty
        if tip.header.number != head.header.number:
            return tip.header.number < head.header.number
        distances = self._distance(tip.header, chain), self._distance(head.header, chain)
        if distances[0] != distances[1]:
            return distances[0] < distances[1]
        return tip.header.hash < head.header.hash

    def _distance(self, header: HashedHeader, chain: HeaderReader) -> int:
        """Return how many blocks ago the author was in turn (consensus.md 1.8)."""
        signers = self._snapshots.after(header, chain).signers
        author = self.author(header)
        if author not in signers:
            # the vote in this block removed its author from the signers, so use the greatest distance
            return len(signers)
        return (header.number - signers.index(author)) % len(signers)

    def snapshot(self, after: HashedHeader, chain: HeaderReader) -> Snapshot:
        """Return signers, votes and recent authors after a block."""
        return self._snapshots.after(after, chain)

    def prepare(self, parent: HashedHeader, preferences: BlockPreferences, chain: HeaderReader) -> Header:
        """Return a header with an empty seal. A vote without effect is omitted, and epoch blocks have no vote."""
        snapshot = self._snapshots.after(parent, chain)
        number = parent.number + 1
        timestamp = max(preferences.timestamp, parent.timestamp + self._parameters.period_at(number))
        header = unsealed_header(parent, replace(preferences, timestamp=timestamp, mix_hash=ZERO_HASH), self._spec)
        is_epoch = self._is_epoch(number)
        vote = (
            preferences.vote
            if preferences.vote is not None and not is_epoch and snapshot.is_meaningful(preferences.vote)
            else None
        )
        vanity = preferences.extra_data[:VANITY].rjust(VANITY, b"\x00")
        listed = b"".join(snapshot.signers) if is_epoch else b""
        return replace(
            header,
            coinbase=vote.target if vote is not None else ZERO_ADDRESS,
            nonce=ADD_NONCE if vote is not None and vote.authorize else DROP_NONCE,
            difficulty=IN_TURN if snapshot.signers and snapshot.in_turn(number) == preferences.author else OUT_OF_TURN,
            extra_data=vanity + listed + bytes(SEAL),
        )

    def signing_hash(self, header: Header) -> Hash32:
        """Return the hash of the header without its seal."""
        return keccak256(rlp.list_of(header.encoded_fields(header.extra_data[:-SEAL])))

    def attach(self, header: Header, seals: Sequence[Signature]) -> Header:
        """Return the header with the seal at the end of the extra data."""
        return replace(header, extra_data=header.extra_data[:-SEAL] + seals[0])

    def members(self, after: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        """Return the signers of the next block."""
        return self._snapshots.after(after, chain).signers

    def checkpoint(self, header: HashedHeader, chain: HeaderReader) -> bytes | None:
        """Return the encoded snapshot after a block."""
        return self._snapshots.checkpoint(header, chain)

    def _applied(self, snapshot: Snapshot, header: HashedHeader) -> Snapshot:
        """Return the snapshot after one more header."""
        return snapshot.apply(header.number, self.author(header), _vote(header.header), self._is_epoch(header.number))

    def _fresh_snapshot(self, header: HashedHeader, chain: HeaderReader) -> Snapshot | None:
        """Return the snapshot after an epoch block, where votes restart, or None for other blocks."""
        if not self._is_epoch(header.number):
            return None
        signers = _listed_signers(header.header)
        recents: list[tuple[int, Address]] = []
        cursor: HashedHeader | None = header
        for _ in range(len(signers) // 2 + 1):
            if cursor is None or cursor.number == 0:
                break
            recents.append((cursor.number, self.author(cursor)))
            cursor = chain.header(cursor.parent_hash)
        return Snapshot(header.number, signers, (), tuple(reversed(recents)))

    def _is_epoch(self, number: int) -> bool:
        return number % self._parameters.epoch_length == 0

    def _recover(self, header: Header) -> Address:
        if len(header.extra_data) < VANITY + SEAL:
            raise InvalidHeader("extra data length", len(header.extra_data), f"at least {VANITY + SEAL}")
        seal = header.extra_data[-SEAL:]
        if not any(seal):
            raise InvalidHeader("seal", "missing", "a signature")
        try:
            return recover_address(self.signing_hash(header), seal)
        except NativeError as error:
            raise InvalidHeader("seal", str(error), "a signature") from error


def _listed_signers(header: Header) -> tuple[Address, ...]:
    """Return the signers that an epoch header lists, in ascending order."""
    middle = header.extra_data[VANITY:-SEAL]
    if len(header.extra_data) < VANITY + SEAL or len(middle) % ADDRESS_LENGTH:
        raise InvalidHeader(
            "extra data length", len(header.extra_data), f"{VANITY + SEAL} and {ADDRESS_LENGTH} a signer"
        )
    return tuple(sorted(middle[at : at + ADDRESS_LENGTH] for at in range(0, len(middle), ADDRESS_LENGTH)))


def _vote(header: Header) -> Vote:
    return Vote(header.coinbase, header.nonce == ADD_NONCE)

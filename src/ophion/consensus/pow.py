"""Proof of work: ethash, verified by the light algorithm, with the historical difficulty rules, ommers and rewards.

`fixeddifficulty` replaces the formulas on test networks; the work is still verified. `verifies_work=False` skips the
work check. The development network and some imports use this setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ophion.chainspec.forks import Fork, Milestone
from ophion.chainspec.spec import ChainSpec
from ophion.consensus import header_rules as rules
from ophion.consensus.difficulty import next_difficulty
from ophion.consensus.engine import BlockPreferences, Finality, HeaderReader, Tip
from ophion.consensus.header_template import unsealed_header
from ophion.errors import GenesisError, InvalidBlock, InvalidHeader
from ophion.native.crypto import keccak256
from ophion.native.ethash import ethash_compute
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import EMPTY_OMMERS_HASH, WEI_PER_ETHER, Address, Hash32, Signature

FUTURE_LEAD_S: Final = 15
MAX_OMMERS: Final = 2
MAX_OMMER_DEPTH: Final = 7
DAO_EXTRA_DATA: Final = b"dao-hard-fork"
_DAO_EXTRA_RANGE: Final = 10
_MIX_HASH_FIELD: Final = 13
_NONCE_FIELD: Final = 14


class PowEngine:
    """The rules of an ethash network."""

    name = "ethash"
    finality = Finality.HEAVIEST

    def __init__(self, spec: ChainSpec, verifies_work: bool = True, equal_timestamps: bool = False) -> None:
        """Create the engine. With `equal_timestamps`, `prepare` may give a block the timestamp of its parent."""
        self._spec = spec
        self._verifies_work = verifies_work
        self._fixed_difficulty = spec.ethash.fixed_difficulty if spec.ethash is not None else None
        # The development network may seal hundreds of blocks a second, so their timestamps may be equal or ahead of the
        # clock.
        self._is_time_free = spec.is_dev
        self._prepared_distance_s = 0 if spec.is_dev and equal_timestamps else 1

    def hashed(self, header: Header, encoded: bytes | None = None) -> HashedHeader:
        """Hash the whole header."""
        return HashedHeader(header, keccak256(header.encode()))

    def author(self, header: HashedHeader) -> Address:
        """Return the coinbase, which is the miner's address."""
        return header.header.coinbase

    def beneficiary(self, header: HashedHeader) -> Address:
        """Return the coinbase, which earns fees and reward."""
        return header.header.coinbase

    def check_genesis(self, header: Header) -> None:
        """Check that the difficulty is not zero, unless the genesis file sets a terminal total difficulty."""
        if header.difficulty == 0 and self._spec.terminal_total_difficulty is None:
            raise GenesisError(
                "Invalid difficulty in genesis block configuration: 0 (must be at least 1)", "difficulty"
            )

    def verify(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Check every rule of a proof-of-work header. The work is checked last, because this check costs most."""
        rules.check_parent(header.header, parent)
        if not self._is_time_free:
            rules.check_not_future(header.header, now, FUTURE_LEAD_S)
        self._verify_against(header.header, parent.header)

    def _verify_against(self, header: Header, parent: Header) -> None:
        spec = self._spec
        fork = spec.fork_of(header)
        rules.check_extra_data(header)
        self._check_dao_extra_data(header)
        rules.check_timestamp(header, parent, 0 if self._is_time_free else 1)
        rules.check_gas_used(header)
        rules.check_gas_limit(header, parent, spec)
        rules.check_tail(header, fork)
        rules.check_base_fee(header, parent, spec)
        rules.check_blobs(header, parent, fork)
        expected = self._difficulty(parent, header.timestamp, fork)
        if header.difficulty != expected:
            raise InvalidHeader("difficulty", header.difficulty, expected)
        if self._verifies_work:
            self.check_work(header)

    def check_work(self, header: Header) -> None:
        """Check that the nonce gives the mix hash, and that the result is at most the target."""
        mix_hash, result = ethash_compute(self.signing_hash(header), int.from_bytes(header.nonce, "big"), header.number)
        if mix_hash != header.mix_hash:
            raise InvalidHeader("mix hash", header.mix_hash, mix_hash)
        if int.from_bytes(result, "big") * header.difficulty > 2**256:
            raise InvalidHeader("proof of work", result, f"at most {target(header.difficulty):#066x}")

    def _check_dao_extra_data(self, header: Header) -> None:
        start = self._spec.dao_fork_block
        if start is None or not start <= header.number < start + _DAO_EXTRA_RANGE:
            return
        if header.extra_data != DAO_EXTRA_DATA:
            raise InvalidHeader("extra data of the DAO fork", header.extra_data, DAO_EXTRA_DATA)

    def _difficulty(self, parent: Header, timestamp: int, fork: Fork) -> int:
        if self._fixed_difficulty is not None:
            return self._fixed_difficulty
        return next_difficulty(parent, timestamp, fork)

    def look_ahead(self, headers: Sequence[HashedHeader]) -> None:
        """Do nothing, because proof of work has no signatures."""

    def unsealed(self, headers: Sequence[HashedHeader]) -> list[HashedHeader]:
        """Return no header, because a header with another nonce or mix hash has another hash."""
        return []

    def verify_ommers(self, header: HashedHeader, ommers: Sequence[Header], chain: HeaderReader) -> None:
        """Check the ommers: at most two, distinct and valid, each a child of the second to seventh ancestor."""
        if not ommers:
            return
        if len(ommers) > MAX_OMMERS:
            raise InvalidBlock("number of ommers", len(ommers), f"at most {MAX_OMMERS}")
        ancestors, seen = self._ancestry(header, chain)
        for ommer in ommers:
            hashed = self.hashed(ommer)
            if hashed.hash in seen:
                raise InvalidBlock("ommer included before", hashed.hash)
            seen.add(hashed.hash)
            if hashed.hash in ancestors:
                raise InvalidBlock("ommer is an ancestor", hashed.hash)
            parent = ancestors.get(ommer.parent_hash)
            if parent is None or ommer.parent_hash == header.parent_hash:
                raise InvalidBlock("ommer's parent is no ancestor within reach", ommer.parent_hash)
            try:
                rules.check_parent(ommer, parent)
                self._verify_against(ommer, parent.header)
            except InvalidHeader as error:
                raise InvalidBlock(f"ommer 0x{hashed.hash.hex()}: {error.rule}", error.got, error.expected) from error

    def _ancestry(self, header: HashedHeader, chain: HeaderReader) -> tuple[dict[Hash32, HashedHeader], set[Hash32]]:
        """Return the last seven ancestors by hash, and the hashes that no ommer may have: the hash of the block itself,
        and the hashes of the ommers of these ancestors.
        """
        ancestors: dict[Hash32, HashedHeader] = {}
        included = {header.hash}
        cursor = header
        for _ in range(MAX_OMMER_DEPTH):
            parent = chain.header(cursor.parent_hash)
            if parent is None:
                break
            ancestors[parent.hash] = parent
            if parent.header.ommers_hash != EMPTY_OMMERS_HASH:
                included.update(self.hashed(ommer).hash for ommer in chain.ommers(parent.hash))
            cursor = parent
        return ancestors, included

    def rewards(self, header: HashedHeader, ommers: Sequence[Header]) -> list[tuple[Address, int]]:
        """Return the block reward, increased by 1/32 per ommer, and the rewards of the ommers by age."""
        block = header.header
        reward = block_reward(self._spec.fork_of(block))
        credits = [(block.coinbase, reward + reward // 32 * len(ommers))]
        credits += [(ommer.coinbase, reward * (8 + ommer.number - block.number) // 8) for ommer in ommers]
        return credits

    def prefers(self, tip: Tip, head: Tip, chain: HeaderReader) -> bool:
        """Prefer the higher total difficulty. On a tie, the block that arrived first stays the head."""
        return tip.total_difficulty > head.total_difficulty

    def prepare(self, parent: HashedHeader, preferences: BlockPreferences, chain: HeaderReader) -> Header:
        """Return a header whose nonce is not set yet."""
        timestamp = max(preferences.timestamp, parent.timestamp + self._prepared_distance_s)
        header = unsealed_header(parent, replace(preferences, timestamp=timestamp), self._spec)
        start = self._spec.dao_fork_block
        if start is not None and start <= header.number < start + _DAO_EXTRA_RANGE:
            header = replace(header, extra_data=DAO_EXTRA_DATA)
        return replace(header, difficulty=self._difficulty(parent.header, timestamp, self._spec.fork_of(header)))

    def signing_hash(self, header: Header) -> Hash32:
        """Return the hash of the header without mix hash and nonce."""
        fields = header.encoded_fields(header.extra_data)
        return keccak256(rlp.list_of(fields[:_MIX_HASH_FIELD] + fields[_NONCE_FIELD + 1 :]))

    def attach(self, header: Header, seals: Sequence[Signature]) -> Header:
        """Return the header unchanged. Proof of work has no signatures; the miner sets nonce and mix hash."""
        return header

    def members(self, after: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        """Return an empty tuple, because every node may mine."""
        return ()

    def checkpoint(self, header: HashedHeader, chain: HeaderReader) -> bytes | None:
        """Return None, because each header is verified with its parent only."""
        return None


def block_reward(fork: Fork) -> int:
    """Return the block reward in wei (EIP-649, EIP-1234)."""
    if fork.has(Milestone.CONSTANTINOPLE):
        return 2 * WEI_PER_ETHER
    if fork.has(Milestone.BYZANTIUM):
        return 3 * WEI_PER_ETHER
    return 5 * WEI_PER_ETHER


def target(difficulty: int) -> int:
    """Return the target: the largest hash that is a valid proof of work."""
    return 2**256 // difficulty

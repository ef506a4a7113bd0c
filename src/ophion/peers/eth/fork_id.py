"""Fork identifiers, which show whether two nodes follow the same fork schedule (EIP-2124, EIP-6122).

The hash covers the genesis and all passed forks; `next` is the next scheduled fork. A node that is still synchronising
has an older hash, so the rules below also accept the hashes before and after the hash of the local head.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from typing import Final

from msgspec import Struct

from ophion.chainspec.spec import ChainSpec
from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError
from ophion.primitives.types import Hash32

_HASH_LENGTH: Final = 4
_NUMBER_LENGTH: Final = 8
_FIRST_TIME: Final = 1_438_269_973
"""Mainnet genesis time. A fork value above this time is a timestamp; a lower value is a block number."""


class ForkId(Struct, frozen=True):
    """The fork identifier of a node."""

    hash: bytes
    """Four bytes: CRC-32 of the genesis hash and the passed forks."""
    next: int
    """Block number or timestamp of the next known fork; 0 if no fork follows."""

    def items(self) -> tuple[bytes, int]:
        """The fields as a tuple that `rlp.encode` accepts."""
        return self.hash, self.next

    @classmethod
    def read(cls, item: rlp.Item) -> ForkId:
        """Read a decoded list. Ignores further items, which later versions may append."""
        if not isinstance(item, list) or len(item) < 2:
            raise RlpError("fork id: a list of two items is expected", 0)
        digest, following = item[0], item[1]
        if not isinstance(digest, bytes) or len(digest) != _HASH_LENGTH:
            raise RlpError(f"fork id: hash is not {_HASH_LENGTH} bytes", 0)
        if not isinstance(following, bytes) or len(following) > _NUMBER_LENGTH:
            raise RlpError(f"fork id: next is not a number of {_NUMBER_LENGTH} bytes", 0)
        return cls(digest, rlp.decode_int(following))


class ForkIds:
    """The fork identifiers of one network."""

    def __init__(self, genesis: Hash32, genesis_time: int, blocks: tuple[int, ...], times: tuple[int, ...]) -> None:
        self._blocks = tuple(sorted({block for block in blocks if block > 0}))
        self._times = tuple(sorted({time for time in times if time > genesis_time}))
        self._forks = self._blocks + self._times
        checksum = zlib.crc32(genesis)
        sums = [checksum]
        for fork in self._forks:
            checksum = zlib.crc32(fork.to_bytes(_NUMBER_LENGTH, "big"), checksum)
            sums.append(checksum)
        self._sums = tuple(value.to_bytes(_HASH_LENGTH, "big") for value in sums)
        """Fork hashes, by the number of passed forks."""

    @classmethod
    def of(cls, spec: ChainSpec, genesis: Hash32, genesis_time: int) -> ForkIds:
        """The fork identifiers of a chain specification."""
        # Announce the fork from Clique to QBFT. Do not announce the fork from IBFT 2.0 to QBFT, because Besu does not
        # announce it.
        migration = (spec.migration_block or 0,) if spec.migrates_from_clique else ()
        return cls(genesis, genesis_time, (*spec.fork_blocks, *migration), spec.fork_times)

    def at(self, number: int, timestamp: int) -> ForkId:
        """The fork identifier of a node with this head."""
        passed = self._passed(number, timestamp)
        return ForkId(self._sums[passed], self._forks[passed] if passed < len(self._forks) else 0)

    def problem(self, remote: ForkId, number: int, timestamp: int) -> str | None:
        """Explain why a remote identifier is incompatible with our head. Returns None when it is compatible."""
        passed = self._passed(number, timestamp)
        if remote.hash == self._sums[passed]:
            if remote.next and _has_passed(remote.next, number, timestamp):
                return f"it announces a fork at {remote.next} that this network does not have"
            return None
        if remote.hash in self._sums[:passed]:
            behind = self._sums.index(remote.hash)
            if remote.next == self._forks[behind]:
                return None
            return f"it does not know the fork at {self._forks[behind]}"
        if remote.hash in self._sums[passed + 1 :]:
            return None
        return f"its fork hash 0x{remote.hash.hex()} does not match this network"

    def first_unknown(self, remote: ForkId, number: int, timestamp: int) -> int | None:
        """Return the block number of the first fork that the remote node announces and this network does not have.
        Returns None without such a fork, and 0 if the remote node has already passed the fork.

        Ignores forks at a timestamp, because their block number is unknown.
        """
        if remote.hash not in self._sums:
            return 0
        is_known = remote.next == 0 or remote.next in self._forks or remote.next > _FIRST_TIME
        return None if is_known else remote.next

    def _passed(self, number: int, timestamp: int) -> int:
        """Number of forks that a head has passed. Timestamp forks follow all block forks."""
        blocks = bisect_right(self._blocks, number)
        if blocks < len(self._blocks):
            return blocks
        return blocks + bisect_right(self._times, timestamp)


def _has_passed(fork: int, number: int, timestamp: int) -> bool:
    return fork <= number or _FIRST_TIME < fork <= timestamp

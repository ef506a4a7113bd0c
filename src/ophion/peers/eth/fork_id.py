"""Fork identifiers: whether two nodes follow the same rules, told in twelve bytes (EIP-2124, EIP-6122).

The hash covers the genesis and every fork that has passed, `next` is the first that has not. A node that is behind
tells another hash than one that is ahead; the rules below see through that, so that only networks which really differ
are kept apart.
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
"""Forks above this are seconds, below it blocks: when Ethereum began, and more blocks than any chain has."""


class ForkId(Struct, frozen=True):
    """What a node says about its forks."""

    hash: bytes
    """Four bytes: checksum of the genesis hash and the forks that have passed."""
    next: int
    """Block or second of the next fork that is known; 0 for none."""

    def items(self) -> tuple[bytes, int]:
        """As `rlp.encode` takes it."""
        return self.hash, self.next

    @classmethod
    def read(cls, item: rlp.Item) -> ForkId:
        """From a decoded list; what a later version appends is passed over."""
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
        """The hash after so many forks."""

    @classmethod
    def of(cls, spec: ChainSpec, genesis: Hash32, genesis_time: int) -> ForkIds:
        """The fork identifiers of a chain specification."""
        return cls(genesis, genesis_time, spec.fork_blocks, spec.fork_times)

    def at(self, number: int, timestamp: int) -> ForkId:
        """What a node whose head is this block says."""
        passed = self._passed(number, timestamp)
        return ForkId(self._sums[passed], self._forks[passed] if passed < len(self._forks) else 0)

    def problem(self, remote: ForkId, number: int, timestamp: int) -> str | None:
        """Why a node with this identifier cannot be of our network; None when it can. The head is ours."""
        passed = self._passed(number, timestamp)
        if remote.hash == self._sums[passed]:
            if remote.next and _has_passed(remote.next, number, timestamp):
                return f"it announces a fork at {remote.next} that did not happen here"
            return None
        if remote.hash in self._sums[:passed]:
            behind = self._sums.index(remote.hash)
            if remote.next == self._forks[behind]:
                return None
            return f"it does not know the fork at {self._forks[behind]}"
        if remote.hash in self._sums[passed + 1 :]:
            return None
        return f"its forks 0x{remote.hash.hex()} are not those of this network"

    def _passed(self, number: int, timestamp: int) -> int:
        """How many forks a head has behind it; forks by time come after all forks by number."""
        blocks = bisect_right(self._blocks, number)
        if blocks < len(self._blocks):
            return blocks
        return blocks + bisect_right(self._times, timestamp)


def _has_passed(fork: int, number: int, timestamp: int) -> bool:
    return fork <= number or _FIRST_TIME < fork <= timestamp

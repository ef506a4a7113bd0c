"""`Siblings`: guesses which contracts are accessed next. Scripts often access contracts in the order of creation.

The address of a contract follows from its creator and the creator's nonce. After two consecutive contracts of one
creator, the next few contracts are guessed. The number of guesses doubles with every further hit. A wrong guess only
adds bytes to a request that is sent anyway.
"""

from __future__ import annotations

from ophion.native.crypto import keccak256
from ophion.primitives import rlp

_MAX_CREATIONS = 16_384
"""Maximum number of contracts per creator whose addresses are computed, counted from the latest contract back."""
_FIRST_GUESS = 8
_MAX_GUESS = 128


class Siblings:
    """Contracts that known accounts have created."""

    def __init__(self) -> None:
        self._fresh: dict[bytes, int] = {}
        self._known: set[bytes] = set()
        self._creations: dict[bytes, tuple[bytes, int]] = {}
        self._last: tuple[bytes, int] | None = None
        """Creator and nonce of the last guessed contract."""
        self._guess = 0

    def add(self, creator: bytes, nonce: int) -> None:
        """Record an account with its nonce, which bounds the number of contracts that the account has created."""
        if nonce and creator not in self._known:
            self._known.add(creator)
            self._fresh[creator] = nonce

    def following(self, address: bytes) -> list[bytes]:
        """Return the contracts that are probably accessed after this contract."""
        self._compute()
        found = self._creations.get(address)
        if found is None:
            return []
        creator, nonce = found
        is_next = self._last is not None and self._last[0] == creator and 0 < nonce - self._last[1] <= 2
        self._guess = min(max(2 * self._guess, _FIRST_GUESS), _MAX_GUESS) if is_next else 0
        self._last = (creator, nonce + self._guess)
        return [creation(creator, nonce + ahead) for ahead in range(1, self._guess + 1)]

    def _compute(self) -> None:
        while self._fresh:
            creator, count = self._fresh.popitem()
            for nonce in range(max(0, count - _MAX_CREATIONS), count + 1):
                self._creations[creation(creator, nonce)] = (creator, nonce)


def creation(creator: bytes, nonce: int) -> bytes:
    """Return the address of the contract that an account creates with this nonce."""
    return keccak256(rlp.list_of([rlp.encode_bytes(creator), rlp.encode_int(nonce)]))[12:]

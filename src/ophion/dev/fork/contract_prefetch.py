"""`Siblings`: guesses which contracts are accessed next. Scripts often access contracts in the order of creation.

The address of a contract follows from its creator and the creator's nonce. After two consecutive contracts of one
creator, the next few contracts are guessed. The number of guesses doubles with every further hit. A wrong guess only
adds bytes to a request that is sent anyway.

Other scripts access the contracts of one creator in no order. After a few of them, each further contract also fetches
its neighbours that are not fetched yet.
"""

from __future__ import annotations

from itertools import chain

from ophion.native.crypto import keccak256
from ophion.primitives import rlp

_MAX_CREATIONS = 16_384
"""Maximum number of contracts per creator whose addresses are computed, counted from the latest contract back."""
_FIRST_GUESS = 8
_MAX_GUESS = 128
_MIN_SCATTERED = 3
"""Number of contracts of one creator, accessed in any order, after which neighbours are guessed."""
_SCATTERED_GUESS = 12
"""Number of neighbours that are guessed at a time. It does not grow, because these guesses may all be wrong."""


class Siblings:
    """Guesses the next contracts from the contracts that known accounts have created."""

    def __init__(self) -> None:
        self._fresh: dict[bytes, int] = {}
        self._known: set[bytes] = set()
        self._creations: dict[bytes, tuple[bytes, int]] = {}
        self._addresses: dict[bytes, tuple[int, list[bytes]]] = {}
        """By creator: a first nonce, and the addresses of the contracts created with this nonce and the following
        nonces.
        """
        self._last: tuple[bytes, int] | None = None
        """Creator and nonce of the contract that was guessed or accessed last."""
        self._guess = 0
        self._row = 0
        """Number of consecutive accesses to contracts of one creator that were not fetched yet."""
        self._returned: set[bytes] = set()

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
        self._returned.add(address)
        creator, nonce = found
        self._row = self._row + 1 if self._last is not None and self._last[0] == creator else 1
        is_next = self._last is not None and self._last[0] == creator and 0 < nonce - self._last[1] <= 2
        self._guess = min(max(2 * self._guess, _FIRST_GUESS), _MAX_GUESS) if is_next else 0
        self._last = (creator, nonce + self._guess)
        if self._guess == 0 and self._row > _MIN_SCATTERED:
            guessed = self._neighbours(creator, nonce)
        else:
            guessed = [creation(creator, nonce + ahead) for ahead in range(1, self._guess + 1)]
        self._returned.update(guessed)
        return guessed

    def _neighbours(self, creator: bytes, nonce: int) -> list[bytes]:
        """Return up to `_SCATTERED_GUESS` contracts of the creator that were not returned before: the next contracts
        after `nonce`, then the contracts before `nonce`, nearest first.
        """
        found: list[bytes] = []
        first, addresses = self._addresses[creator]
        position = nonce - first
        for address in chain(addresses[position + 1 :], reversed(addresses[:position])):
            if address not in self._returned:
                found.append(address)
                if len(found) == _SCATTERED_GUESS:
                    break
        return found

    def _compute(self) -> None:
        while self._fresh:
            creator, count = self._fresh.popitem()
            first = max(0, count - _MAX_CREATIONS)
            addresses = [creation(creator, nonce) for nonce in range(first, count + 1)]
            self._addresses[creator] = (first, addresses)
            self._creations |= {address: (creator, nonce) for nonce, address in enumerate(addresses, start=first)}


def creation(creator: bytes, nonce: int) -> bytes:
    """Return the address of the contract that an account creates with this nonce."""
    return keccak256(rlp.list_of([rlp.encode_bytes(creator), rlp.encode_int(nonce)]))[12:]

"""Which accounts can sign here."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from ophion.native.crypto import PrivateKey
from ophion.primitives.types import Address


class Keyring:
    """Keys by account, in the order in which the accounts are shown."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._keys = {key.address: key for key in map(PrivateKey, secrets)}
        self.turns: defaultdict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Whoever gives an account's next nonce to a transaction holds its lock until the transaction has entered the
        pool: two at once would get the same nonce."""

    @property
    def addresses(self) -> list[Address]:
        return list(self._keys)

    def get(self, address: Address) -> PrivateKey | None:
        """The key of an account; None for one that cannot sign here."""
        return self._keys.get(address)

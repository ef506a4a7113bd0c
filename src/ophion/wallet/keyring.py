"""Accounts for which this node can sign."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from ophion.native.crypto import PrivateKey
from ophion.primitives.types import Address


class Keyring:
    """Keys by account, in display order."""

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._keys = {key.address: key for key in map(PrivateKey, secrets)}
        self.locks: defaultdict[Address, asyncio.Lock] = defaultdict(asyncio.Lock)
        """The lock of each account. Hold it from choosing a nonce until the transaction is in the pool, so that two
        callers cannot use the same nonce.
        """

    @property
    def addresses(self) -> list[Address]:
        return list(self._keys)

    def get(self, address: Address) -> PrivateKey | None:
        """Return the key of an account; None when this node cannot sign for the account."""
        return self._keys.get(address)

    def add(self, key: PrivateKey) -> None:
        """Add the key of an account, so that this node can sign for the account."""
        self._keys[key.address] = key

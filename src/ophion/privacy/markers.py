"""Markers: who signs them, and with which nonce.

A fresh key for each marker tells nobody who sent it, and costs no order: its nonce is always 0. It has no funds either,
so it works where gas is free. A key of the node has funds and an order; its nonces are given out here, one after
another, and asked of the pool again after a refusal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from ophion.native.crypto import PrivateKey
from ophion.native.privacy import sign_markers
from ophion.native.transactions import Transaction, decode_transactions
from ophion.pool.pool import TxPool
from ophion.primitives.types import Address, Hash32
from ophion.runtime.batching import Batches
from ophion.runtime.clock import Entropy
from ophion.runtime.lanes import Lanes

_SECRET_BYTES: Final = 32


class MarkerRequest(Struct, frozen=True):
    """What a marker takes from its private transaction."""

    data: bytes
    """The key of the payload, and of what is handed over with it."""
    gas_price: int
    gas_limit: int


class Draft(Struct, frozen=True):
    """A marker that will be sent when its payload has been delivered."""

    wish: MarkerRequest
    signing: asyncio.Future[Transaction] | None
    """None with a key of the node: its nonces are in the order in which markers are sent."""


class Markers:
    """Makes markers and puts them into the pool."""

    def __init__(
        self,
        pool: TxPool,
        lanes: Lanes,
        entropy: Entropy,
        precompile: Address,
        key: PrivateKey | None,
        account_nonce: Callable[[Address], int],
    ) -> None:
        """`account_nonce`: the nonce of an account at the head."""
        self._pool = pool
        self._entropy = entropy
        self._precompile = precompile
        self._key = key
        self._account_nonce = account_nonce
        self._next: int | None = None
        self._signing: Batches[MarkerRequest, Transaction] = Batches(lanes.read, self._sign_random)

    def draft(self, wish: MarkerRequest) -> Draft:
        """Begin to make a marker: it is signed while its payload is on its way."""
        if self._key is not None:
            return Draft(wish, None)
        signing = self._signing.submit(wish)
        signing.add_done_callback(_look_at)
        return Draft(wish, signing)

    async def send(self, draft: Draft) -> Hash32:
        """The hash of a marker that the pool has taken; raises what the pool has against it."""
        if draft.signing is not None:
            return await self._pool.send_decoded(await draft.signing)
        assert self._key is not None, "without a key of the node a marker is signed when it is drafted"
        nonce = self._next_nonce(self._key.address)
        raw = self._signed([(self._key.secret(), nonce, draft.wish)])[0]
        try:
            # the pool sees them in the order of their nonces: nothing is awaited in between
            return await self._pool.send(raw)
        except BaseException:
            self._next = None
            raise

    def _next_nonce(self, address: Address) -> int:
        known = self._pool.next_nonce(address)
        if known is None:
            known = self._account_nonce(address)
        nonce = known if self._next is None else max(known, self._next)
        # behind a gap that a refused one left: one that is acknowledged is not replaced by one that pays more
        while self._pool.by_sender_nonce(address, nonce) is not None:
            nonce += 1
        self._next = nonce + 1
        return nonce

    def _sign_random(self, wishes: Sequence[MarkerRequest]) -> list[Transaction]:
        raws = self._signed([(self._entropy.token(_SECRET_BYTES), 0, wish) for wish in wishes])
        made = decode_transactions(raws)
        return [one for one in made if not isinstance(one, str)]

    def _signed(self, wanted: Sequence[tuple[bytes, int, MarkerRequest]]) -> list[bytes]:
        rows = [(secret, nonce, one.gas_price, one.gas_limit, one.data) for secret, nonce, one in wanted]
        return sign_markers(self._precompile, rows)


def _look_at(signing: asyncio.Future[Transaction]) -> None:
    """Where its payload was refused nobody asks for a marker any more, nor for what went wrong with it."""
    if not signing.cancelled():
        signing.exception()

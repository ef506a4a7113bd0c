"""`MarkerSender`: signs marker transactions and assigns their nonces.

With a random key per marker, the sender is hidden and the nonce is always 0. A random key has no funds, so the network
must have free gas. A fixed key of the node has funds and consecutive nonces, which are assigned here. After a refusal
the next nonce is read from the pool again.
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
from ophion.runtime.thread_pools import Lanes

_SECRET_BYTES: Final = 32


class MarkerRequest(Struct, frozen=True):
    """Fields of a privacy marker transaction that come from its private transaction."""

    data: bytes
    """Key of the payload, and key of the handover index if there is one."""
    gas_price: int
    gas_limit: int


class MarkerDraft(Struct, frozen=True):
    """A marker to be sent once its payload has been delivered."""

    request: MarkerRequest
    signing: asyncio.Future[Transaction] | None
    """The running signing job. With a fixed key this is None, because the nonce of the marker is assigned when the
    marker is sent.
    """


class MarkerSender:
    """Signs markers and adds them to the pool."""

    def __init__(
        self,
        pool: TxPool,
        lanes: Lanes,
        entropy: Entropy,
        precompile: Address,
        key: PrivateKey | None,
        account_nonce: Callable[[Address], int],
    ) -> None:
        """`account_nonce` returns the nonce of an account at the head."""
        self._pool = pool
        self._entropy = entropy
        self._precompile = precompile
        self._key = key
        self._account_nonce = account_nonce
        self._next: int | None = None
        self._signing: Batches[MarkerRequest, Transaction] = Batches(lanes.read, self._sign_random)

    def draft(self, request: MarkerRequest) -> MarkerDraft:
        """Start signing a marker while its payload is being delivered."""
        if self._key is not None:
            return MarkerDraft(request, None)
        signing = self._signing.submit(request)
        signing.add_done_callback(_retrieve_error)
        return MarkerDraft(request, signing)

    async def send(self, draft: MarkerDraft) -> Hash32:
        """Add a marker to the pool and return its hash. Raises the pool's error if the pool refuses the marker."""
        if draft.signing is not None:
            return await self._pool.send_decoded(await draft.signing)
        assert self._key is not None, "without a key of the node a marker is signed when it is drafted"
        nonce = self._next_nonce(self._key.address)
        raw = self._signed([(self._key.secret(), nonce, draft.request)])[0]
        try:
            # `send` submits the marker at once, and only its answer is awaited. No await may come between `_next_nonce`
            # and `send`, so that markers reach the pool in nonce order.
            return await self._pool.send(raw)
        except BaseException:
            self._next = None
            raise

    def _next_nonce(self, address: Address) -> int:
        known = self._pool.next_nonce(address)
        if known is None:
            known = self._account_nonce(address)
        nonce = known if self._next is None else max(known, self._next)
        # skip nonces of markers that are already in the pool, so that the new marker replaces none of them
        while self._pool.by_sender_nonce(address, nonce) is not None:
            nonce += 1
        self._next = nonce + 1
        return nonce

    def _sign_random(self, requests: Sequence[MarkerRequest]) -> list[Transaction]:
        raws = self._signed([(self._entropy.token(_SECRET_BYTES), 0, request) for request in requests])
        made = decode_transactions(raws)
        return [one for one in made if not isinstance(one, str)]

    def _signed(self, requests: Sequence[tuple[bytes, int, MarkerRequest]]) -> list[bytes]:
        rows = [(secret, nonce, one.gas_price, one.gas_limit, one.data) for secret, nonce, one in requests]
        return sign_markers(self._precompile, rows)


def _retrieve_error(signing: asyncio.Future[Transaction]) -> None:
    """Retrieve and ignore the signing error of a marker that is not sent."""
    if not signing.cancelled():
        signing.exception()

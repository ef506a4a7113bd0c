"""`Submission`: checks a private transaction, distributes it and sends its marker (privacy.md 3).

The steps have the same order as in Besu, except that all checks run before the payload is distributed. So a refused
transaction leaves no payload behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ophion.enclave.interface import Enclave
from ophion.errors import PoolRejected, PrivacyRefused
from ophion.native.exceptions import NativeError
from ophion.native.privacy import PrivateTransaction, decode_private_transaction, decode_private_transactions
from ophion.primitives.types import Address, Hash32
from ophion.privacy.flexible_groups import FlexibleGroups
from ophion.privacy.marker_sender import MarkerDraft, MarkerRequest, MarkerSender
from ophion.privacy.options import DEFAULT_MAX_GAS
from ophion.runtime.batching import Batches
from ophion.runtime.thread_pools import Lanes

UNDECODABLE: Final = "Unable to decode the private signed raw transaction"
NO_ETHER: Final = "We cannot transfer ether in private transaction yet."
WRONG_TYPE: Final = "Unimplemented private transaction type"
NOT_OUR_KEY: Final = "Private from does not match enclave public key"
NO_GROUP: Final = "Offchain Privacy group does not exist."
NONCE_TOO_LOW: Final = "Private transaction nonce too low"
GAS_TOO_HIGH: Final = "Private transaction gas limit exceeds --privacy-max-transaction-gas"
_RESTRICTED: Final = b"restricted"
_SHORT_BYTES: Final = 8 * 1024
_MIN_TOGETHER: Final = 8
"""Minimum number of open transactions that are decoded together. Recovering eight signers together takes as long as
recovering two or three one by one.
"""


class CheckedTransaction(Struct, frozen=True):
    """A private transaction that passed all checks."""

    transaction: PrivateTransaction
    group: bytes


class Submission:
    """Accepts private transactions of clients."""

    def __init__(
        self,
        enclave: Enclave,
        markers: MarkerSender,
        lanes: Lanes,
        chain_id: int,
        private_nonce: Callable[[bytes, Address], int],
        flexible: FlexibleGroups | None = None,
        max_gas: int = DEFAULT_MAX_GAS,
    ) -> None:
        """Create the submission. `private_nonce` returns the nonce of an account in a group. `flexible` is None if
        flexible groups are disabled.
        """
        self._flexible = flexible
        self._max_gas = max_gas
        self._enclave = enclave
        self._markers = markers
        self._chain_id = chain_id
        self._private_nonce = private_nonce
        self._decoding: Batches[bytes, PrivateTransaction] = Batches(lanes.read, decode_private_transactions)
        self._open = 0
        """Number of transactions that are being sent."""

    async def send(self, raw: bytes, keys: tuple[bytes, ...]) -> Hash32:
        """Check and distribute a transaction, and send its marker. Returns the marker's hash. `keys` are the allowed
        values of privateFrom.
        """
        self._open += 1
        try:
            checked = await self.check(raw, keys)
            drafts: list[MarkerDraft] = []
            data = await self._distribute(checked, lambda key: drafts.append(self._draft(checked, key)))
            return await self._markers.send(drafts[0] if drafts else self._draft(checked, data))
        finally:
            self._open -= 1

    def _draft(self, checked: CheckedTransaction, data: bytes) -> MarkerDraft:
        transaction = checked.transaction
        return self._markers.draft(MarkerRequest(data, transaction.gas_price, transaction.gas_limit))

    async def distribute(self, raw: bytes, keys: tuple[bytes, ...]) -> bytes:
        """Check and distribute a transaction. Returns the data for the marker, which the client sends itself."""
        return await self._distribute(await self.check(raw, keys))

    async def check(self, raw: bytes, keys: tuple[bytes, ...]) -> CheckedTransaction:
        """Run all checks on a transaction. Raises `PrivacyRefused` or `PoolRejected`."""
        try:
            # if few transactions are open, decode a small transaction on the event loop, because a switch to a thread
            # takes longer than the decoding
            is_alone = len(raw) <= _SHORT_BYTES and self._open < _MIN_TOGETHER
            transaction = decode_private_transaction(raw) if is_alone else await self._decoding.do(raw)
        except NativeError:
            raise PrivacyRefused(UNDECODABLE) from None
        if transaction.value:
            raise PrivacyRefused(NO_ETHER)
        if transaction.restriction != _RESTRICTED:
            raise PrivacyRefused(WRONG_TYPE)
        if transaction.private_from not in keys:
            raise PrivacyRefused(NOT_OUR_KEY)
        if transaction.gas_limit > self._max_gas:
            raise PrivacyRefused(f"{GAS_TOO_HIGH} ({self._max_gas})")
        group = await self._group_of(transaction)
        if transaction.chain_id is not None and transaction.chain_id != self._chain_id:
            raise PoolRejected("private-chain-id", "Wrong Chain ID in transaction signature")
        sender = transaction.sender
        if sender is None:
            raise PoolRejected("invalid-signature", "Invalid signature")
        if transaction.nonce < self._private_nonce(group, sender):
            raise PrivacyRefused(NONCE_TOO_LOW)
        return CheckedTransaction(transaction, group)

    async def _group_of(self, transaction: PrivateTransaction) -> bytes:
        if self._flexible is not None:
            return self._flexible.check(transaction)
        id = transaction.group
        if id is None:
            raise PrivacyRefused(NO_GROUP)
        if transaction.private_for is None:
            group = await self._enclave.group(id)
            if group is None or not group.active or transaction.private_from not in group.members:
                raise PrivacyRefused(NO_GROUP)
        return id

    async def _distribute(self, checked: CheckedTransaction, sealed: Callable[[bytes], None] | None = None) -> bytes:
        """Send the payload to the participants. Returns the data for the marker. Calls `sealed` with the payload key
        before delivery, except for flexible groups.
        """
        transaction = checked.transaction
        if self._flexible is not None:
            return await self._flexible.distribute(transaction, checked.group)
        sender, to = transaction.private_from, transaction.private_for
        if to is None:
            return await self._enclave.send(transaction.raw, sender, group_id=checked.group, sealed=sealed)
        return await self._enclave.send(transaction.raw, sender, to=to or [sender], sealed=sealed)

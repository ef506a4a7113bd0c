"""Sender accounts: created for the run, and funded if transactions cost something."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ophion.errors import CommandError
from ophion.native.crypto import PrivateKey, keccak256
from ophion.primitives.hexcodec import data
from ophion.primitives.types import Address
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.json_rpc_client import JsonRpcConnection
from ophion.wallet.unsigned_transaction import LEGACY, UnsignedTransaction

TRANSFER_GAS: Final = 21_000
_SENDERS: Final = 128
_GROUPS: Final = 4
"""Number of account groups. When the network loses an accepted transaction, the benchmark continues with the next
group.
"""
_RECEIVER: Final = bytes(18) + b"\xbe\x11"
_FUNDING_LIMIT_S: Final = 60.0
_TRANSFERS_EACH: Final = 100_000
"""Number of transfers for which each account gets funds, if the funder has enough."""


class SignedTransaction(Struct, frozen=True):
    """A signed transaction of the load, as hexadecimal text, with its hash."""

    text: bytes
    """The raw transaction as a JSON string."""
    hash: str


class Senders:
    """Accounts with their next nonces."""

    def __init__(
        self, keys: list[PrivateKey], chain_id: int, gas_price: int, spare: Sequence[list[PrivateKey]] = ()
    ) -> None:
        """Create the set of senders. `spare` are groups of accounts that replace the current group after a lost
        transaction.
        """
        self._keys = keys
        self._spare = deque(spare)
        self._nonces = [0] * len(keys)
        self._chain_id = chain_id
        self._gas_price = gas_price
        self._turn = 0

    @classmethod
    async def make(cls, node: JsonRpcConnection, funder: PrivateKey | None, entropy: Entropy, clock: Clock) -> Senders:
        """Create accounts, and fund them if transactions cost something. Raises `CommandError` if funds are needed and
        no funder is given.
        """
        chain_id = int(await node.call("eth_chainId"), 16)
        price = int(await node.call("eth_gasPrice"), 16)
        keys = [PrivateKey(keccak256(entropy.token(32))) for _ in range(_SENDERS * _GROUPS)]
        first, *spare = (keys[start : start + _SENDERS] for start in range(0, len(keys), _SENDERS))
        if price == 0:
            return cls(first, chain_id, 0, spare)
        price *= 2  # double the price as a margin, because the base fee may rise during the run
        if funder is None:
            raise CommandError(
                "Transactions cost something on this network: set the key of an account that pays (--key-file)."
            )
        await _fund(node, funder, [key.address for key in keys], chain_id, price, clock)
        return cls(first, chain_id, price, spare)

    def sign(self, count: int) -> list[SignedTransaction]:
        """Sign the next transfers. Consecutive transfers have different senders."""
        return [self._next() for _ in range(count)]

    def move_on(self) -> None:
        """Switch to spare accounts, if any are left, after the network has lost an accepted transaction."""
        if self._spare:
            self._keys = self._spare.popleft()
            self._nonces = [0] * len(self._keys)
            self._turn = 0

    async def sync_nonces(self, node: JsonRpcConnection) -> None:
        """Set the next nonce of each account to its nonce on the chain. After this call, `sign` creates refused
        transactions again, byte for byte, because it reuses their nonces.
        """
        for index, key in enumerate(self._keys):
            self._nonces[index] = int(await node.call("eth_getTransactionCount", data(key.address), "latest"), 16)

    def _next(self) -> SignedTransaction:
        index = self._turn
        self._turn = (index + 1) % len(self._keys)
        nonce = self._nonces[index]
        self._nonces[index] += 1
        raw = _transfer(self._keys[index], nonce, _RECEIVER, 0, self._chain_id, self._gas_price)
        return SignedTransaction(b'"0x%b"' % raw.hex().encode(), data(keccak256(raw)))


async def _fund(
    node: JsonRpcConnection, funder: PrivateKey, accounts: list[Address], chain_id: int, price: int, clock: Clock
) -> None:
    balance = int(await node.call("eth_getBalance", data(funder.address), "latest"), 16)
    cost = price * TRANSFER_GAS
    each = min((balance - cost * len(accounts)) // (2 * len(accounts)), cost * _TRANSFERS_EACH)
    if each < cost:
        raise CommandError(f"The account {data(funder.address)} has {balance} wei: too little for the benchmark.")
    nonce = int(await node.call("eth_getTransactionCount", data(funder.address), "pending"), 16)
    for offset, account in enumerate(accounts):
        raw = _transfer(funder, nonce + offset, account, each, chain_id, price)
        await node.call("eth_sendRawTransaction", data(raw))
    until = clock.monotonic() + _FUNDING_LIMIT_S
    while int(await node.call("eth_getBalance", data(accounts[-1]), "latest"), 16) == 0:
        if clock.monotonic() > until:
            raise CommandError(
                f"The senders had no funds after {_FUNDING_LIMIT_S:.0f} s: does the network produce blocks?"
            )
        await asyncio.sleep(0.1)


def _transfer(key: PrivateKey, nonce: int, to: Address, value: int, chain_id: int, price: int) -> bytes:
    return UnsignedTransaction(
        type=LEGACY, chain_id=chain_id, nonce=nonce, gas=TRANSFER_GAS, to=to, value=value, gas_price=price
    ).signed_by(key)

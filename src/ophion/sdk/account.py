"""`Account`: an address that can send transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ophion.abi.addresses import checksum_address
from ophion.sdk import arguments
from ophion.sdk.errors import ArgumentError

if TYPE_CHECKING:
    from ophion.sdk.chain import Chain
    from ophion.sdk.receipt import Receipt


class Account(str):
    """An address of a chain. It is a `str` with a checksum, so that every library accepts it.

    >>> from ophion import Chain
    >>> chain = Chain()
    >>> alice, bob = chain.accounts[:2]
    >>> receipt = alice.transfer(bob, 10**18)
    >>> bob.balance == 10_001 * 10**18
    True
    """

    __slots__ = ("_chain", "raw")

    _chain: Chain
    raw: bytes

    def __new__(cls, chain: Chain, address: bytes) -> Account:
        made = super().__new__(cls, checksum_address(address))
        made._chain = chain
        made.raw = address
        return made

    @property
    def address(self) -> str:
        """The address as plain text."""
        return str.__str__(self)

    @property
    def balance(self) -> int:
        """Balance in wei."""
        return self._chain.balance(self)

    @balance.setter
    def balance(self, wei: int) -> None:
        self._chain.set_balance(self, wei)

    @property
    def nonce(self) -> int:
        """Number of transactions that the account has sent."""
        return self._chain.nonce(self)

    @property
    def code(self) -> bytes:
        """Code of the account; empty for most accounts."""
        return self._chain.code(self)

    @property
    def key(self) -> bytes | None:
        """The private key; None for an account that the `Chain` object has not made."""
        return self._chain.backend.private_key(self.raw)

    def transfer(self, to: Any, value: int, data: bytes = b"", **options: Any) -> Receipt:
        """Send wei to an account."""
        if to is None:
            raise ArgumentError("to: None is not an address. `chain.send(data=...)` creates a contract.")
        return self._chain.send(to, data, value=value, sender=self, **options)

    def __repr__(self) -> str:
        return f"<Account {self.address}>"

    def __eq__(self, other: object) -> bool:
        """Compare addresses without regard to case."""
        if isinstance(other, str):
            return self.lower() == other.lower()
        return isinstance(other, bytes) and other == self.raw

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (self.address,)

    def _repr_html_(self) -> str:
        from ophion.sdk.html import table

        return table("Account", {"address": self.address, "balance": f"{self.balance} wei", "nonce": self.nonce})


def raw_address(value: Any, name: str = "address") -> bytes:
    """Return the bytes of an account, an address or a contract. Error messages call the argument `name`."""
    return value.raw if isinstance(value, Account) else arguments.address(name, value)

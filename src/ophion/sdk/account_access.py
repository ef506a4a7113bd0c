"""`AccountAccess`: reads and changes the accounts of a chain."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from ophion.sdk import arguments
from ophion.sdk.account import Account, raw_address
from ophion.sdk.backend import AccountEdit, Backend, Block

if TYPE_CHECKING:
    from ophion.sdk.chain import Chain


class AccountAccess:
    """The part of `Chain` that is about accounts."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._default: bytes | None = None

    @cached_property
    def accounts(self) -> list[Account]:
        """Accounts with funds that can send transactions."""
        return [Account(self._own, address) for address in self.backend.accounts()]

    def account(self, address: Any) -> Account:
        """Return any address as an account."""
        return Account(self._own, raw_address(address))

    @property
    def default_account(self) -> Account:
        """The default sender of calls and transactions: the first account."""
        if self._default is None:
            self._default = self.accounts[0].raw if self.accounts else bytes(20)
        return Account(self._own, self._default)

    @default_account.setter
    def default_account(self, account: Any) -> None:
        self._default = raw_address(account, "default_account")

    def sender_of(self, sender: Any) -> bytes:
        """Return the address of a sender; None means the default account."""
        if sender is None:
            return self._default if self._default is not None else self.default_account.raw
        return raw_address(sender, "sender")

    def impersonate(self, address: Any) -> Account:
        """Let an account send transactions without its key."""
        account = self.account(address)
        self.backend.impersonate(account.raw, True)
        return account

    def stop_impersonating(self, address: Any) -> None:
        """Require the key of an account again."""
        self.backend.impersonate(raw_address(address), False)

    def balance(self, account: Any, block: Block = None) -> int:
        """Return the balance of an account in wei."""
        return self.backend.balance(raw_address(account, "account"), block if block is None else arguments.block(block))

    def nonce(self, account: Any, block: Block = None) -> int:
        """Return the number of transactions that an account has sent."""
        return self.backend.nonce(raw_address(account, "account"), block if block is None else arguments.block(block))

    def code(self, account: Any, block: Block = None) -> bytes:
        """Return the code of a contract."""
        return self.backend.code(raw_address(account, "account"), block if block is None else arguments.block(block))

    def storage(self, account: Any, slot: int | bytes, block: Block = None) -> bytes:
        """Return a storage slot as 32 bytes."""
        return self.backend.storage(
            raw_address(account, "account"), arguments.word("slot", slot), arguments.block(block)
        )

    def set_balance(self, account: Any, wei: int) -> None:
        """Set the balance of an account in wei."""
        self.backend.edit(AccountEdit(raw_address(account, "account"), balance=arguments.wei("wei", wei)))

    def set_nonce(self, account: Any, nonce: int) -> None:
        """Set the nonce of an account."""
        number = arguments.whole_number("nonce", nonce, arguments.UINT64)
        self.backend.edit(AccountEdit(raw_address(account, "account"), nonce=number))

    def set_code(self, account: Any, code: bytes | str) -> None:
        """Set the code of an account; its storage stays."""
        raw = arguments.byte_string("code", code)
        self.backend.edit(AccountEdit(raw_address(account, "account"), code=raw))

    def set_storage(self, account: Any, slot: int | bytes, value: int | bytes) -> None:
        """Set a storage slot of an account."""
        change = arguments.word("slot", slot), arguments.word("value", value)
        self.backend.edit(AccountEdit(raw_address(account, "account"), slots=[change]))

    @property
    def _own(self) -> Chain:
        return cast("Chain", self)

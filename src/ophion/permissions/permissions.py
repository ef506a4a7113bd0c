"""`Permissions`: the rules of a node in one object, for those who ask and for those who change them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ophion.errors import ConfigError, RulesError
from ophion.native.executor import State
from ophion.native.transactions import Transaction
from ophion.permissions.allow_list import AllowList
from ophion.permissions.options import DEFAULT_FILE, PermissionConfig
from ophion.permissions.requests import ACCOUNTS
from ophion.permissions.rules_file import RulesFile
from ophion.primitives.block import HashedHeader
from ophion.primitives.types import Address

RELOAD_FAILED: Final = (
    "Error reloading permissions file. Please use perm_getAccountsWhitelist and perm_getNodesWhitelist to review the"
    " current state of the whitelists"
)


class Permissions:
    """Rules that are in force; a list that is None permits everybody."""

    def __init__(self, accounts: AllowList[Address] | None = None) -> None:
        self._accounts = accounts

    @classmethod
    def open(cls, config: PermissionConfig, data_path: Path) -> Permissions:
        """The rules that options ask for; `ConfigError` with everything that is wrong with their files."""
        problems: list[str] = []
        accounts = None
        if config.accounts_file_enabled:
            try:
                accounts = AllowList(RulesFile(config.accounts_file or data_path / DEFAULT_FILE, ACCOUNTS))
            except RulesError as error:
                problems.append(error.message)
        if problems:
            raise ConfigError(problems)
        return cls(accounts)

    # --- who may ----------------------------------------------------------------------------------------

    def account_refusal(self, sender: Address) -> str | None:
        """Why an account may not send transactions, by the list of this node; None: it may."""
        accounts = self._accounts
        if accounts is None or sender in accounts.entries:
            return None
        return f"account 0x{sender.hex()} is not in the list of permitted accounts ({accounts.file.path})"

    def refusals(self, parent: HashedHeader, state: State, candidates: Sequence[Transaction]) -> dict[int, str]:
        """Positions of what may not be in a block on `parent`, and why. `state` is that after the parent.

        Called from the thread in which blocks are built.
        """
        if self._accounts is None:
            return {}
        judged = ((position, self.account_refusal(one.sender)) for position, one in enumerate(candidates))
        return {position: reason for position, reason in judged if reason is not None}

    # --- the lists --------------------------------------------------------------------------------------

    @property
    def accounts(self) -> AllowList[Address]:
        """The permitted accounts; `RulesError` where they are not listed."""
        if self._accounts is None:
            raise RulesError("Account whitelisting has not been enabled")
        return self._accounts

    def reload(self) -> None:
        """Read the files anew; on any error the lists stay as they are."""
        if self._accounts is None:
            raise RulesError("Node/Account whitelisting has not been enabled")
        try:
            accounts = self._accounts.file.read()
        except RulesError as error:
            raise RulesError(RELOAD_FAILED, error.message) from None
        self._accounts.replace(accounts)

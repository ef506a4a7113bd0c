"""perm_*: who is permitted, by the lists of this node (json-rpc.md 5.11, operations.md 10.3)."""

from __future__ import annotations

from typing import Annotated

from ophion.permissions.requests import ACCOUNTS, requested_accounts
from ophion.rpc.errors import invalid_params
from ophion.rpc.language.registry import method
from ophion.rpc.language.wire_types import Text, Wire, decode_text, object_result
from ophion.rpc.questions.context import RpcContext

_SUCCESS = "Success"


def _decode_texts(value: object) -> list[str]:
    if type(value) is not list:
        raise invalid_params("an array of strings inside the array of parameters is expected")
    return [decode_text(member) for member in value]


_TEXTS_SCHEMA = {"type": "array", "items": {"type": "string"}}
TextsParam = Annotated[list[str], Wire("list", "list of strings", _TEXTS_SCHEMA, _decode_texts)]
Texts = Annotated[list[str], object_result("list", "list of strings", _TEXTS_SCHEMA)]


@method("perm_addAccountsToWhitelist", aliases=["perm_addAccountsToAllowlist"])
def add_accounts(ctx: RpcContext, accounts: TextsParam) -> Text:
    """Let more accounts send transactions, all of them or none."""
    permitted = ctx.permissions.accounts
    permitted.add(requested_accounts(accounts))
    return _SUCCESS


@method("perm_removeAccountsFromWhitelist", aliases=["perm_removeAccountsFromAllowlist"])
def remove_accounts(ctx: RpcContext, accounts: TextsParam) -> Text:
    """Let accounts send transactions no longer, all of them or none."""
    permitted = ctx.permissions.accounts
    permitted.remove(requested_accounts(accounts))
    return _SUCCESS


@method("perm_getAccountsWhitelist", aliases=["perm_getAccountsAllowlist"])
def get_accounts(ctx: RpcContext) -> Texts:
    """The accounts that may send transactions."""
    return [ACCOUNTS.write(account) for account in ctx.permissions.accounts]


@method("perm_reloadPermissionsFromFile")
def reload(ctx: RpcContext) -> Text:
    """Read the lists from their files again; they stay as they are when something is wrong there."""
    ctx.permissions.reload()
    return _SUCCESS

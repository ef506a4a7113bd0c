"""perm_*: who is permitted, by the lists of this node (json-rpc.md 5.11, operations.md 10.3).

Later releases of the original client renamed the methods, and what their errors call the list: each name has its own
texts here (json-rpc.md 7.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from ophion.errors import OphionError, RulesError
from ophion.permissions.list_requests import ACCOUNTS, requested_accounts, requested_nodes
from ophion.primitives.enode import Enode
from ophion.rpc.errors import invalid_params
from ophion.rpc.methods.client import require_p2p
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import Text, Wire, decode_text, object_result
from ophion.rpc.services.context import RpcContext

if TYPE_CHECKING:
    from ophion.permissions.allow_list import AllowList

_SUCCESS = "Success"


def _decode_texts(value: object) -> list[str]:
    if type(value) is not list:
        raise invalid_params("an array of strings inside the array of parameters is expected")
    return [decode_text(member) for member in value]


_TEXTS_SCHEMA = {"type": "array", "items": {"type": "string"}}
TextsParam = Annotated[list[str], Wire("list", "list of strings", _TEXTS_SCHEMA, _decode_texts)]
Texts = Annotated[list[str], object_result("list", "list of strings", _TEXTS_SCHEMA)]


def _later(error: OphionError) -> OphionError:
    """An error in the words of the later names."""
    if not isinstance(error, RulesError):
        return error
    text = error.message.replace("whitelisting", "allowlist").replace("whitelist", "allowlist")
    return RulesError(text, error.detail)


@method("perm_addAccountsToWhitelist", aliases=["perm_addAccountsToAllowlist"], alias_error=_later)
async def add_accounts(ctx: RpcContext, accounts: TextsParam) -> Text:
    """Let more accounts send transactions, all of them or none."""
    permitted = ctx.permissions.accounts
    return await _changed(ctx, lambda: permitted.prepare(requested_accounts(accounts), ()))


@method("perm_removeAccountsFromWhitelist", aliases=["perm_removeAccountsFromAllowlist"], alias_error=_later)
async def remove_accounts(ctx: RpcContext, accounts: TextsParam) -> Text:
    """Let accounts send transactions no longer, all of them or none."""
    permitted = ctx.permissions.accounts
    return await _changed(ctx, lambda: permitted.prepare((), requested_accounts(accounts)))


@method("perm_getAccountsWhitelist", aliases=["perm_getAccountsAllowlist"], alias_error=_later)
def get_accounts(ctx: RpcContext) -> Texts:
    """The accounts that may send transactions."""
    return [ACCOUNTS.write(account) for account in ctx.permissions.accounts]


@method("perm_addNodesToWhitelist", aliases=["perm_addNodesToAllowlist"], alias_error=_later)
async def add_nodes(ctx: RpcContext, nodes: TextsParam) -> Text:
    """Let more nodes connect, all of them or none."""
    permitted = _nodes(ctx)
    return await _changed(ctx, lambda: permitted.prepare(requested_nodes(nodes), ()))


@method("perm_removeNodesFromWhitelist", aliases=["perm_removeNodesFromAllowlist"], alias_error=_later)
async def remove_nodes(ctx: RpcContext, nodes: TextsParam) -> Text:
    """Let nodes connect no longer, all of them or none; connections with them end at once.

    Bootnodes and static nodes stay.
    """
    _nodes(ctx)
    permissions = ctx.permissions
    return await _changed(ctx, lambda: permissions.without_nodes(requested_nodes(nodes)))


@method("perm_getNodesWhitelist", aliases=["perm_getNodesAllowlist"], alias_error=_later)
def get_nodes(ctx: RpcContext) -> Texts:
    """The nodes that may connect, beside this one."""
    return [node.url for node in _nodes(ctx)]


def _nodes(ctx: RpcContext) -> AllowList[Enode]:
    permitted = ctx.permissions.nodes
    require_p2p(ctx)
    return permitted


@method("perm_reloadPermissionsFromFile")
async def reload(ctx: RpcContext) -> Text:
    """Read the lists from their files again; they stay as they are when something is wrong there."""
    return await _changed(ctx, ctx.permissions.reloading)


async def _changed(ctx: RpcContext, prepare: Callable[[], Callable[[], None]]) -> str:
    """Thousands of entries take a while to read, to compare and to write: the loop does not wait for that."""
    await ctx.permissions.change(ctx.lanes.read, prepare)
    return _SUCCESS

"""perm_*: local allowlists of accounts and nodes (json-rpc.md 5.11, operations.md 10.3).

Later Besu releases renamed the methods from whitelist to allowlist and changed their error messages. A request gets the
error messages that belong to its method name (json-rpc.md 7.1).
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
from ophion.rpc.schema.wire_types import Text, WireType, decode_text, object_result
from ophion.rpc.services.context import RpcContext

if TYPE_CHECKING:
    from ophion.permissions.allow_list import AllowList

_SUCCESS = "Success"


def _decode_texts(value: object) -> list[str]:
    if type(value) is not list:
        raise invalid_params("an array of strings inside the array of parameters is expected")
    return [decode_text(member) for member in value]


_TEXTS_SCHEMA = {"type": "array", "items": {"type": "string"}}
TextsParam = Annotated[list[str], WireType("list", "list of strings", _TEXTS_SCHEMA, _decode_texts)]
Texts = Annotated[list[str], object_result("list", "list of strings", _TEXTS_SCHEMA)]


def _later(error: OphionError) -> OphionError:
    """Return the error with the message of later Besu releases, for the allowlist method names."""
    if not isinstance(error, RulesError):
        return error
    text = error.message.replace("whitelisting", "allowlist").replace("whitelist", "allowlist")
    return RulesError(text, error.detail)


@method("perm_addAccountsToWhitelist", aliases=["perm_addAccountsToAllowlist"], alias_error=_later)
async def add_accounts(ctx: RpcContext, accounts: TextsParam) -> Text:
    """Adds accounts to the allowlist, all or none. Accounts of the allowlist may send transactions."""
    permitted = ctx.permissions.accounts
    return await _changed(ctx, lambda: permitted.prepare(requested_accounts(accounts), ()))


@method("perm_removeAccountsFromWhitelist", aliases=["perm_removeAccountsFromAllowlist"], alias_error=_later)
async def remove_accounts(ctx: RpcContext, accounts: TextsParam) -> Text:
    """Removes accounts from the allowlist, all or none. Removed accounts may no longer send transactions."""
    permitted = ctx.permissions.accounts
    return await _changed(ctx, lambda: permitted.prepare((), requested_accounts(accounts)))


@method("perm_getAccountsWhitelist", aliases=["perm_getAccountsAllowlist"], alias_error=_later)
def get_accounts(ctx: RpcContext) -> Texts:
    """Returns the accounts that may send transactions."""
    return [ACCOUNTS.write(account) for account in ctx.permissions.accounts]


@method("perm_addNodesToWhitelist", aliases=["perm_addNodesToAllowlist"], alias_error=_later)
async def add_nodes(ctx: RpcContext, nodes: TextsParam) -> Text:
    """Adds nodes to the allowlist, all or none. Nodes of the allowlist may connect."""
    permitted = _nodes(ctx)
    return await _changed(ctx, lambda: permitted.prepare(requested_nodes(nodes, permitted.file.codec), ()))


@method("perm_removeNodesFromWhitelist", aliases=["perm_removeNodesFromAllowlist"], alias_error=_later)
async def remove_nodes(ctx: RpcContext, nodes: TextsParam) -> Text:
    """Removes nodes from the allowlist, all or none, and disconnects them at once.

    Bootnodes and static nodes stay allowed.
    """
    codec = _nodes(ctx).file.codec
    permissions = ctx.permissions
    return await _changed(ctx, lambda: permissions.without_nodes(requested_nodes(nodes, codec)))


@method("perm_getNodesWhitelist", aliases=["perm_getNodesAllowlist"], alias_error=_later)
def get_nodes(ctx: RpcContext) -> Texts:
    """Returns the nodes that may connect, besides this node."""
    return [node.url for node in _nodes(ctx)]


def _nodes(ctx: RpcContext) -> AllowList[Enode]:
    permitted = ctx.permissions.nodes
    require_p2p(ctx)
    return permitted


@method("perm_reloadPermissionsFromFile")
async def reload(ctx: RpcContext) -> Text:
    """Reloads the allowlists from their files. If a file is invalid, the allowlists stay unchanged."""
    return await _changed(ctx, ctx.permissions.reloading)


async def _changed(ctx: RpcContext, prepare: Callable[[], Callable[[], None]]) -> str:
    """Apply a change of the allowlists in a worker thread, because a list may have thousands of entries."""
    await ctx.permissions.change(ctx.lanes.read, prepare)
    return _SUCCESS

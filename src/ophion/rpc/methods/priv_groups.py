"""priv_*, privx_*: creates, finds and deletes privacy groups (privacy.md 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from ophion.enclave.encoding import base64_text, group_object
from ophion.enclave.interface import Group
from ophion.errors import EnclaveError
from ophion.rpc.errors import PRIVACY_OFF
from ophion.rpc.schema.private_types import GroupIdParam, GroupRequestParam, KeysParam
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import Text, TextParam, WireType, encode_json
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.private_access import enclave_error, private

_CREATE = "Error creating privacy group"
_DELETE = "Error deleting privacy group"
_FIND = "Error finding privacy group"
_FIND_FLEXIBLE = "Error finding flexible privacy group"
_ONCHAIN = "ONCHAIN"

GroupsJson = Annotated[
    list[dict[str, Any]], WireType("groups", "privacy groups", {"type": "array"}, encode=encode_json)
]


@method("priv_createPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def create_privacy_group(
    ctx: RpcContext, group: GroupRequestParam, name: TextParam = "", description: TextParam = ""
) -> Text:
    """Creates a group and sends it to its members, which must include this node. Returns the group's id."""
    wanted = (group.name if group.name is not None else name, group.description or description)
    try:
        return base64_text((await private(ctx).create_group(group.addresses, *wanted)).id)
    except EnclaveError as error:
        raise enclave_error(error, _CREATE) from error


@method("priv_deletePrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def delete_privacy_group(ctx: RpcContext, group: GroupIdParam) -> Text:
    """Marks a group as deleted on all its members; its state stays. Returns the group's id."""
    try:
        return base64_text(await private(ctx).delete_group(group))
    except EnclaveError as error:
        raise enclave_error(error, _DELETE) from error


@method("priv_findPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def find_privacy_group(ctx: RpcContext, addresses: KeysParam) -> GroupsJson:
    """Returns the groups that have exactly these members."""
    try:
        return [group_object(group) for group in await private(ctx).find_groups(addresses)]
    except EnclaveError as error:
        raise enclave_error(error, _FIND) from error


@method("privx_findFlexiblePrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def find_flexible_privacy_group(ctx: RpcContext, addresses: KeysParam) -> GroupsJson:
    """Returns the flexible groups that have exactly these members (`--privacy-flexible-groups-enabled`)."""
    return [group_object(group) for group in await _flexible_groups(ctx, addresses)]


@method("privx_findOnchainPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
@method("privx_findOnChainPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def find_onchain_privacy_group(ctx: RpcContext, addresses: KeysParam) -> GroupsJson:
    """Returns the result of `priv_findFlexiblePrivacyGroup` with the type ONCHAIN, the older name of FLEXIBLE."""
    return [group_object(group) | {"type": _ONCHAIN} for group in await _flexible_groups(ctx, addresses)]


async def _flexible_groups(ctx: RpcContext, addresses: Sequence[bytes]) -> list[Group]:
    try:
        return await private(ctx).find_flexible_groups(addresses)
    except EnclaveError as error:
        raise enclave_error(error, _FIND_FLEXIBLE) from error

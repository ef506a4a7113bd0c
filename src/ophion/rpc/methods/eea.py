"""eea_*, priv_*: private transactions, their receipts and nonces, and groups (privacy.md 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ophion.enclave.encoding import base64_text, group_object
from ophion.enclave.group_ids import legacy_id
from ophion.errors import EnclaveError, OphionError, RpcError
from ophion.primitives.hexcodec import data
from ophion.privacy.rpc_objects import receipt_object, transaction_object
from ophion.rpc.errors import NO_PRECOMPILE, PRIVACY_OFF, RESPONSE_TOO_LARGE, as_rpc_error
from ophion.rpc.schema.private_types import GroupIdParam, GroupRequestParam, KeyParam, KeysParam, SignedPrivateParam
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import (
    AddressParam,
    AddressResult,
    Data,
    HashParam,
    HashResult,
    Quantity,
    Text,
    TextParam,
    Wire,
    encode_json,
    object_result,
)
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.private_logs import MAX_LOGS

if TYPE_CHECKING:
    from ophion.privacy.service import Privacy  # only nodes with private transactions import this module

_CREATE = "Error creating privacy group"
_DELETE = "Error deleting privacy group"
_FIND = "Error finding privacy group"
_ONCHAIN = "ONCHAIN"
_NONCE = "Unable to determine nonce for account in group."

PrivateReceiptJson = Annotated[
    dict[str, Any], object_result("private receipt", "receipt of a private transaction", {"type": "object"})
]
PrivateTransactionJson = Annotated[
    dict[str, Any], object_result("private transaction", "a private transaction", {"type": "object"})
]
GroupsJson = Annotated[list[dict[str, Any]], Wire("groups", "privacy groups", {"type": "array"}, encode=encode_json)]
ExplanationJson = Annotated[
    dict[str, Any], object_result("explanation", "state of a private transaction", {"type": "object"})
]
StatusJson = Annotated[dict[str, Any], object_result("status", "status of private transactions", {"type": "object"})]


def private(ctx: RpcContext) -> Privacy:
    """Return the private transactions component of this node."""
    assert ctx.privacy is not None, "methods that need it are bound to an error without it"
    return ctx.privacy


def _rpc_error(error: OphionError, otherwise: str) -> RpcError:
    """Return an RPC error with the enclave's error code, or with the message `otherwise` if the error has no code."""
    known = as_rpc_error(error) if isinstance(error, EnclaveError) and error.code else None
    return known if known is not None else RpcError(PRIVACY_OFF.code, otherwise, error.message)


@method("eea_sendRawTransaction", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def send_raw_transaction(ctx: RpcContext, transaction: SignedPrivateParam) -> HashResult:
    """Check a signed private transaction, send it to its participants and return the hash of its marker.

    The marker is a public transaction whose data is the key of the sealed payload. All checks run before the payload is
    sent. A private nonce may be higher than the account's next private nonce. The transaction is executed when its
    nonce is next.
    """
    return await private(ctx).send(transaction)


@method("priv_distributeRawTransaction", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def distribute_raw_transaction(ctx: RpcContext, transaction: SignedPrivateParam) -> Data:
    """Check and distribute a signed private transaction; the client sends the marker itself.

    Returns the key of the payload, which is the data of the marker.
    """
    return await private(ctx).distribute(transaction)


@method("eea_getTransactionReceipt", needs={"privacy"}, without=PRIVACY_OFF)
@method("priv_getTransactionReceipt", needs={"privacy"}, without=PRIVACY_OFF)
async def get_transaction_receipt(ctx: RpcContext, hash: HashParam) -> PrivateReceiptJson | None:
    """Return the receipt of a private transaction by the hash of its marker.

    Null while the marker is not mined, and on nodes that are not participants. `status` is 0x1 for success, 0x0 for
    failure, and 0x2 when the transaction could not be executed (for example because of a wrong private nonce).
    """
    found = await private(ctx).receipt(hash)
    if found is None:
        return None
    if found[0].log_count > MAX_LOGS:
        raise RESPONSE_TOO_LARGE()
    return receipt_object(*found)


@method("priv_getPrivateTransaction", needs={"privacy"}, without=PRIVACY_OFF)
async def get_private_transaction(ctx: RpcContext, hash: HashParam) -> PrivateTransactionJson | None:
    """Return a private transaction by the hash of its marker.

    The key `hash` of the result is the hash of the private transaction. Null while the marker is not mined, and on
    nodes that are not participants.
    """
    found = await private(ctx).transaction(hash)
    return None if found is None else transaction_object(found)


@method("priv_getTransactionCount", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def get_transaction_count(ctx: RpcContext, address: AddressParam, group: GroupIdParam) -> Quantity:
    """Return the number of an account's executed private transactions in a group; 0 for an unknown group."""
    try:
        return await private(ctx).nonce(group, address)
    except EnclaveError as error:
        raise _rpc_error(error, _NONCE) from error


@method("eea_getTransactionCount", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
@method("priv_getEeaTransactionCount", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def get_eea_transaction_count(
    ctx: RpcContext, address: AddressParam, private_from: KeyParam, private_for: KeysParam
) -> Quantity:
    """Return the number of an account's executed private transactions in the group of a sender and its recipients."""
    privacy, members = private(ctx), [private_from, *private_for]
    try:
        return await privacy.nonce(legacy_id(members), address, members)
    except EnclaveError as error:
        raise _rpc_error(error, _NONCE) from error


@method("priv_getPrivacyPrecompileAddress", needs={"privacy"}, without=NO_PRECOMPILE)
def get_privacy_precompile_address(ctx: RpcContext) -> AddressResult:
    """Return the address to which markers are sent."""
    return private(ctx).precompile


# --- groups --------------------------------------------------------------------------------------


@method("priv_createPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def create_privacy_group(
    ctx: RpcContext, group: GroupRequestParam, name: TextParam = "", description: TextParam = ""
) -> Text:
    """Create a group and send it to its members, which must include this node. Returns the group's id."""
    wanted = (group.name if group.name is not None else name, group.description or description)
    try:
        return base64_text((await private(ctx).create_group(group.addresses, *wanted)).id)
    except EnclaveError as error:
        raise _rpc_error(error, _CREATE) from error


@method("priv_deletePrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def delete_privacy_group(ctx: RpcContext, group: GroupIdParam) -> Text:
    """Mark a group as deleted on all its members; its state stays. Returns the group's id."""
    try:
        return base64_text(await private(ctx).delete_group(group))
    except EnclaveError as error:
        raise _rpc_error(error, _DELETE) from error


@method("priv_findPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def find_privacy_group(ctx: RpcContext, addresses: KeysParam) -> GroupsJson:
    """Return the groups that have exactly these members."""
    try:
        return [group_object(group) for group in await private(ctx).find_groups(addresses)]
    except EnclaveError as error:
        raise _rpc_error(error, _FIND) from error


@method("privx_findFlexiblePrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def find_flexible_privacy_group(ctx: RpcContext, addresses: KeysParam) -> GroupsJson:
    """Return the flexible groups that have exactly these members (`--privacy-flexible-groups-enabled`)."""
    return [group_object(group) for group in await private(ctx).find_flexible_groups(addresses)]


@method("privx_findOnchainPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
@method("privx_findOnChainPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def find_onchain_privacy_group(ctx: RpcContext, addresses: KeysParam) -> GroupsJson:
    """Return the result of `priv_findFlexiblePrivacyGroup` with the type ONCHAIN, the older name of FLEXIBLE."""
    groups = await private(ctx).find_flexible_groups(addresses)
    return [group_object(group) | {"type": _ONCHAIN} for group in groups]


# --- diagnosis -----------------------------------------------------------------------------------


@method("priv_explain", needs={"privacy"}, without=PRIVACY_OFF)
async def explain(ctx: RpcContext, hash: HashParam) -> ExplanationJson:
    """Explain what this node knows of a private transaction, by the hash of its marker.

    `state` is `executed`, `failed`, `invalid`, `pending` (the marker is not mined), `waiting`, `suspended`, `no
    payload` (this node is no participant, or the payload has not arrived: `askFrom` lists connected group members),
    `not ours`, `not a marker` or `unknown`.
    """
    return {"marker": data(hash)} | await private(ctx).explain(hash)


@method("priv_catchUp", needs={"privacy"}, without=PRIVACY_OFF)
async def catch_up(ctx: RpcContext, group: GroupIdParam | None = None) -> Quantity:
    """Request missing payloads of one group, or of all groups, from the other members.

    Returns how many payloads arrived. Each payload is executed at the position of its marker; later transactions of its
    group are executed again.
    """
    return await private(ctx).catch_up(group)


@method("priv_status", needs={"privacy"}, without=PRIVACY_OFF)
def status(ctx: RpcContext) -> StatusJson:
    """Return keys, peers, groups and outbox of the enclave, and the block that private states have reached."""
    return private(ctx).status()

"""eea_*, priv_*: private transactions, their receipts and nonces, and groups (privacy.md 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ophion.enclave.encoding import base64_text, group_object
from ophion.enclave.group_ids import legacy_id
from ophion.errors import EnclaveError, OphionError, RpcError
from ophion.primitives.hexcodec import data
from ophion.privacy.results import receipt_object, transaction_object
from ophion.rpc.errors import NO_PRECOMPILE, PRIVACY_OFF, RESPONSE_TOO_LARGE, as_rpc_error
from ophion.rpc.schema.private_types import GroupIdParam, GroupWishParam, KeyParam, KeysParam, SignedPrivateParam
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
    from ophion.privacy.service import Privacy  # a node without private transactions does not load it

_CREATE = "Error creating privacy group"
_DELETE = "Error deleting privacy group"
_FIND = "Error finding privacy group"
_ONCHAIN = "ONCHAIN"
_NONCE = "Unable to determine nonce for account in group."

PrivateReceiptJson = Annotated[
    dict[str, Any], object_result("private receipt", "what became of a private transaction", {"type": "object"})
]
PrivateTransactionJson = Annotated[
    dict[str, Any], object_result("private transaction", "a private transaction", {"type": "object"})
]
GroupsJson = Annotated[list[dict[str, Any]], Wire("groups", "privacy groups", {"type": "array"}, encode=encode_json)]
ExplanationJson = Annotated[
    dict[str, Any], object_result("explanation", "what is known of a private transaction", {"type": "object"})
]
StatusJson = Annotated[dict[str, Any], object_result("status", "what there is of privacy", {"type": "object"})]


def private(ctx: RpcContext) -> Privacy:
    """Private transactions of this node."""
    assert ctx.privacy is not None, "methods that need it are bound to an error without it"
    return ctx.privacy


def _told(error: OphionError, otherwise: str) -> RpcError:
    """The enclave's own word where it has one; else this sentence."""
    told = as_rpc_error(error) if isinstance(error, EnclaveError) and error.code else None
    return told if told is not None else RpcError(PRIVACY_OFF.code, otherwise, error.message)


@method("eea_sendRawTransaction", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def send_raw_transaction(ctx: RpcContext, transaction: SignedPrivateParam) -> HashResult:
    """Check a signed private transaction, hand it to its participants, and give the hash of its marker.

    The marker is an ordinary transaction whose data is the key of the sealed payload. Everything is checked before
    anybody hears of the transaction. A private nonce may be ahead of the account's; it is executed in its turn.
    """
    return await private(ctx).send(transaction)


@method("priv_distributeRawTransaction", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def distribute_raw_transaction(ctx: RpcContext, transaction: SignedPrivateParam) -> Data:
    """Check and distribute a signed private transaction; whoever asks sends the marker himself.

    The result is the key of the payload, which is the data of the marker.
    """
    return await private(ctx).distribute(transaction)


@method("eea_getTransactionReceipt", needs={"privacy"}, without=PRIVACY_OFF)
@method("priv_getTransactionReceipt", needs={"privacy"}, without=PRIVACY_OFF)
async def get_transaction_receipt(ctx: RpcContext, hash: HashParam) -> PrivateReceiptJson | None:
    """What became of a private transaction, by the hash of its marker.

    Null while the marker is not mined, and where this node is not a participant. `status` is 0x1, 0x0 when it failed,
    and 0x2 when it could not be run (a wrong private nonce, for example).
    """
    found = await private(ctx).receipt(hash)
    if found is None:
        return None
    if found[0].log_count > MAX_LOGS:
        raise RESPONSE_TOO_LARGE()
    return receipt_object(*found)


@method("priv_getPrivateTransaction", needs={"privacy"}, without=PRIVACY_OFF)
async def get_private_transaction(ctx: RpcContext, hash: HashParam) -> PrivateTransactionJson | None:
    """The private transaction behind a marker; its `hash` is its own.

    Null while the marker is not mined, and where this node is not a participant.
    """
    found = await private(ctx).transaction(hash)
    return None if found is None else transaction_object(found)


@method("priv_getTransactionCount", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def get_transaction_count(ctx: RpcContext, address: AddressParam, group: GroupIdParam) -> Quantity:
    """Private transactions of an account in a group that were executed; 0 for an unknown account or group."""
    try:
        return await private(ctx).nonce(group, address)
    except EnclaveError as error:
        raise _told(error, _NONCE) from error


@method("eea_getTransactionCount", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
@method("priv_getEeaTransactionCount", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def get_eea_transaction_count(
    ctx: RpcContext, address: AddressParam, private_from: KeyParam, private_for: KeysParam
) -> Quantity:
    """The same for the group of a sender and his recipients."""
    privacy, members = private(ctx), [private_from, *private_for]
    try:
        return await privacy.nonce(legacy_id(members), address, members)
    except EnclaveError as error:
        raise _told(error, _NONCE) from error


@method("priv_getPrivacyPrecompileAddress", needs={"privacy"}, without=NO_PRECOMPILE)
def get_privacy_precompile_address(ctx: RpcContext) -> AddressResult:
    """The address that markers are sent to."""
    return private(ctx).precompile


# --- groups --------------------------------------------------------------------------------------


@method("priv_createPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def create_privacy_group(
    ctx: RpcContext, group: GroupWishParam, name: TextParam = "", description: TextParam = ""
) -> Text:
    """Make a group of these members and tell them; this node must be among them. The result is the group's id."""
    wanted = (group.name if group.name is not None else name, group.description or description)
    try:
        return base64_text((await private(ctx).create_group(group.addresses, *wanted)).id)
    except EnclaveError as error:
        raise _told(error, _CREATE) from error


@method("priv_deletePrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def delete_privacy_group(ctx: RpcContext, group: GroupIdParam) -> Text:
    """Mark a group as deleted, here and at its members; its states stay. The result is its id."""
    try:
        return base64_text(await private(ctx).delete_group(group))
    except EnclaveError as error:
        raise _told(error, _DELETE) from error


@method("priv_findPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def find_privacy_group(ctx: RpcContext, addresses: KeysParam) -> GroupsJson:
    """The groups of exactly these members."""
    try:
        return [group_object(group) for group in await private(ctx).find_groups(addresses)]
    except EnclaveError as error:
        raise _told(error, _FIND) from error


@method("privx_findFlexiblePrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def find_flexible_privacy_group(ctx: RpcContext, addresses: KeysParam) -> GroupsJson:
    """The groups of exactly these members whose contracts keep them (`--privacy-flexible-groups-enabled`)."""
    return [group_object(group) for group in await private(ctx).find_flexible_groups(addresses)]


@method("privx_findOnchainPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
@method("privx_findOnChainPrivacyGroup", needs={"privacy"}, without=PRIVACY_OFF)
async def find_onchain_privacy_group(ctx: RpcContext, addresses: KeysParam) -> GroupsJson:
    """The same groups under the type name ONCHAIN: clients that use this name of the method know no FLEXIBLE."""
    groups = await private(ctx).find_flexible_groups(addresses)
    return [group_object(group) | {"type": _ONCHAIN} for group in groups]


# --- for people ----------------------------------------------------------------------------------


@method("priv_explain", needs={"privacy"}, without=PRIVACY_OFF)
async def explain(ctx: RpcContext, hash: HashParam) -> ExplanationJson:
    """What this node knows of a private transaction, by the hash of its marker.

    `state` is `executed`, `failed`, `invalid`, `pending` (its marker is not mined), `waiting`, `no payload` (not for
    this node, or not arrived: `askFrom` names members that are connected), `not ours`, `not a marker` or `unknown`.
    """
    return {"marker": data(hash)} | await private(ctx).explain(hash)


@method("priv_catchUp", needs={"privacy"}, without=PRIVACY_OFF)
async def catch_up(ctx: RpcContext, group: GroupIdParam | None = None) -> Quantity:
    """Ask the other members for payloads that are missing here, of one group or of all.

    The result is how many came. They are executed at their place in the chain, and everything of their groups since.
    """
    return await private(ctx).catch_up(group)


@method("priv_status", needs={"privacy"}, without=PRIVACY_OFF)
def status(ctx: RpcContext) -> StatusJson:
    """Keys, peers, groups and outbox of the enclave, and how far private states have followed the chain."""
    return private(ctx).status()

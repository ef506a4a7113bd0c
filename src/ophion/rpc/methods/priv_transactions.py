"""eea_*, priv_*: sends private transactions; receipts and nonces (privacy.md 10).

`priv_groups.py` has the privacy groups, `priv_state.py` private states and logs.
"""

from __future__ import annotations

from typing import Annotated, Any

from ophion.enclave.group_ids import legacy_id
from ophion.errors import EnclaveError
from ophion.primitives.hexcodec import data
from ophion.privacy.rpc_objects import receipt_object, transaction_object
from ophion.rpc.errors import NO_PRECOMPILE, PRIVACY_OFF, RESPONSE_TOO_LARGE
from ophion.rpc.schema.private_types import GroupIdParam, KeyParam, KeysParam, SignedPrivateParam
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import (
    AddressParam,
    AddressResult,
    Data,
    HashParam,
    HashResult,
    Quantity,
    object_result,
)
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.private_access import enclave_error, private
from ophion.rpc.services.private_logs import MAX_LOGS

_NONCE = "Unable to determine nonce for account in group."

PrivateReceiptJson = Annotated[
    dict[str, Any], object_result("private receipt", "receipt of a private transaction", {"type": "object"})
]
PrivateTransactionJson = Annotated[
    dict[str, Any], object_result("private transaction", "a private transaction", {"type": "object"})
]
ExplanationJson = Annotated[
    dict[str, Any], object_result("explanation", "state of a private transaction", {"type": "object"})
]
StatusJson = Annotated[dict[str, Any], object_result("status", "status of private transactions", {"type": "object"})]


@method("eea_sendRawTransaction", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def send_raw_transaction(ctx: RpcContext, transaction: SignedPrivateParam) -> HashResult:
    """Checks a signed private transaction, sends it to its participants and returns the hash of its marker transaction.

    The privacy marker transaction is a public transaction whose data is the key of the sealed payload. All checks run
    before the payload is sent. A private nonce may be higher than the account's next private nonce. The private
    transaction is executed when its nonce is next.
    """
    return await private(ctx).send(transaction)


@method("priv_distributeRawTransaction", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def distribute_raw_transaction(ctx: RpcContext, transaction: SignedPrivateParam) -> Data:
    """Checks and distributes a signed private transaction; the client sends the privacy marker transaction itself.

    Returns the key of the payload, which is the data of the marker transaction.
    """
    return await private(ctx).distribute(transaction)


@method("eea_getTransactionReceipt", needs={"privacy"}, without=PRIVACY_OFF)
@method("priv_getTransactionReceipt", needs={"privacy"}, without=PRIVACY_OFF)
async def get_transaction_receipt(ctx: RpcContext, hash: HashParam) -> PrivateReceiptJson | None:
    """Returns the receipt of a private transaction by the hash of its privacy marker transaction.

    Null while the marker transaction is not mined, and on nodes that are not participants. `status` is 0x1 for success,
    0x0 for failure, and 0x2 when the transaction could not be executed (for example because of a wrong private nonce).
    """
    found = await private(ctx).receipt(hash)
    if found is None:
        return None
    if found[0].log_count > MAX_LOGS:
        raise RESPONSE_TOO_LARGE()
    return receipt_object(*found)


@method("priv_getPrivateTransaction", needs={"privacy"}, without=PRIVACY_OFF)
async def get_private_transaction(ctx: RpcContext, hash: HashParam) -> PrivateTransactionJson | None:
    """Returns a private transaction by the hash of its privacy marker transaction.

    The key `hash` of the result is the hash of the private transaction. Null while the marker transaction is not mined,
    and on nodes that are not participants.
    """
    found = await private(ctx).transaction(hash)
    return None if found is None else transaction_object(found)


@method("priv_getTransactionCount", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def get_transaction_count(ctx: RpcContext, address: AddressParam, group: GroupIdParam) -> Quantity:
    """Returns the number of an account's executed private transactions in a group; 0 for an unknown group."""
    try:
        return await private(ctx).nonce(group, address)
    except EnclaveError as error:
        raise enclave_error(error, _NONCE) from error


@method("eea_getTransactionCount", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
@method("priv_getEeaTransactionCount", needs={"privacy"}, exact_count=True, without=PRIVACY_OFF)
async def get_eea_transaction_count(
    ctx: RpcContext, address: AddressParam, private_from: KeyParam, private_for: KeysParam
) -> Quantity:
    """Returns the number of an account's executed private transactions in the group of a sender and its recipients."""
    privacy, members = private(ctx), [private_from, *private_for]
    try:
        return await privacy.nonce(legacy_id(members), address, members)
    except EnclaveError as error:
        raise enclave_error(error, _NONCE) from error


@method("priv_getPrivacyPrecompileAddress", needs={"privacy"}, without=NO_PRECOMPILE)
def get_privacy_precompile_address(ctx: RpcContext) -> AddressResult:
    """Returns the address to which privacy marker transactions are sent."""
    return private(ctx).precompile


# --- diagnosis -----------------------------------------------------------------------------------


@method("priv_explain", needs={"privacy"}, without=PRIVACY_OFF)
async def explain(ctx: RpcContext, hash: HashParam) -> ExplanationJson:
    """Explains what this node knows of a private transaction, by the hash of its privacy marker transaction.

    `state` is `executed`, `failed`, `invalid`, `pending` (the marker transaction is not mined), `waiting`, `suspended`,
    `no payload` (this node is no participant, or the payload has not arrived: `askFrom` lists connected group members),
    `not ours`, `not a marker` or `unknown`.
    """
    return {"marker": data(hash)} | await private(ctx).explain(hash)


@method("priv_catchUp", needs={"privacy"}, without=PRIVACY_OFF)
async def catch_up(ctx: RpcContext, group: GroupIdParam | None = None) -> Quantity:
    """Requests missing payloads of one group, or of all groups, from the other members.

    Returns how many payloads arrived. Each payload is executed at the position of its privacy marker transaction; later
    transactions of its group are executed again.
    """
    return await private(ctx).catch_up(group)


@method("priv_status", needs={"privacy"}, without=PRIVACY_OFF)
def status(ctx: RpcContext) -> StatusJson:
    """Returns keys, peers, groups and outbox of the enclave, and the block that private states have reached."""
    return private(ctx).status()

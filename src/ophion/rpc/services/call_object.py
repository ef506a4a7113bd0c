"""Call objects and overrides of `eth_call`, `eth_estimateGas` and `eth_createAccessList`.

`Call` is the decoded object of json-rpc.md 3.4. Its gas is set later, when the block is known. Overrides replace parts
of accounts and of the block for one call (json-rpc.md 7.1). Unknown keys are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from ophion.chain.block_environment import EnvOverrides
from ophion.native.executor import AccountOverride, CallRequest
from ophion.primitives.types import ZERO_ADDRESS, Address, Hash32
from ophion.rpc.errors import invalid_params
from ophion.rpc.schema.wire_types import (
    WireType,
    decode_address,
    decode_boolean,
    decode_data,
    decode_gas,
    decode_hash,
    decode_quantity,
    decode_slot,
)


@dataclass
class Call:
    """A call object. Neither frozen nor slotted, because the decoder sets only the fields that are given."""

    sender: Address | None = None
    to: Address | None = None
    gas: int | None = None
    value: int = 0
    input: bytes = b""
    nonce: int | None = None
    gas_price: int | None = None
    max_fee_per_gas: int | None = None
    max_priority_fee_per_gas: int | None = None
    max_fee_per_blob_gas: int | None = None
    blob_hashes: Sequence[Hash32] = ()
    access_list: Sequence[tuple[Address, Sequence[Hash32]]] = ()
    authorizations: Sequence[tuple[int, Address, int, int, int, int]] = ()
    chain_id: int | None = None
    is_strict: bool | None = None

    def paying_for_blobs(self, price: int) -> Call:
        """Return the same call with this blob gas price."""
        return replace(self, max_fee_per_blob_gas=price)

    def request(self, gas: int, strict: bool = True, checks_base_fee: bool = True) -> CallRequest:
        """Return the call in the form of the Rust extension, with this gas limit.

        The balance is checked only if the call names a sender. `strict` applies to calls without a `strict` key. If a
        call has both a gas price and EIP-1559 fees, the EIP-1559 fees apply. Without `checks_base_fee`, the price may
        be below the base fee.
        """
        sender = self.sender
        is_strict = strict if self.is_strict is None else self.is_strict
        pays = sender is not None and is_strict
        if sender is None:
            sender = ZERO_ADDRESS
        if self.__dict__.keys() <= _PLAIN:
            return CallRequest(
                sender=sender, to=self.to, gas=gas, value=self.value, input=self.input, check_balance=pays
            )
        has_new_fees = self.max_fee_per_gas is not None or self.max_priority_fee_per_gas is not None
        return CallRequest(
            sender=sender,
            to=self.to,
            gas=gas,
            value=self.value,
            input=self.input,
            nonce=self.nonce,
            gas_price=None if has_new_fees else self.gas_price,
            max_fee_per_gas=self.max_fee_per_gas,
            max_priority_fee_per_gas=self.max_priority_fee_per_gas,
            max_fee_per_blob_gas=self.max_fee_per_blob_gas,
            blob_hashes=self.blob_hashes,
            access_list=self.access_list,
            authorizations=self.authorizations,
            check_balance=pays,
            check_base_fee=checks_base_fee and (strict or is_strict),
        )


_PLAIN: Final = frozenset({"sender", "to", "gas", "value", "input"})
"""Names of the JSON keys that a plain call may have."""


def _narrow(bits: int) -> Callable[[Any], int]:
    """Return a decoder for quantities that rejects numbers of more than `bits` bits."""

    def decode(value: Any) -> int:
        number = decode_quantity(value)
        if number.bit_length() > bits:
            raise invalid_params(f"quantity: a number of at most {bits} bits is expected")
        return number

    return decode


_u64, _u128 = _narrow(64), _narrow(128)


def _access_list(value: Any) -> list[tuple[Address, list[Hash32]]]:
    return [
        (decode_address(entry.get("address")), [decode_slot(key) for key in _array(entry, "storageKeys")])
        for entry in _objects(value, "accessList")
    ]


def _authorizations(value: Any) -> list[tuple[int, Address, int, int, int, int]]:
    return [
        (
            _u64(entry.get("chainId")),
            decode_address(entry.get("address")),
            _u64(entry.get("nonce")),
            _narrow(8)(entry.get("yParity", entry.get("v"))),
            decode_quantity(entry.get("r")),
            decode_quantity(entry.get("s")),
        )
        for entry in _objects(value, "authorizationList")
    ]


def _hashes(value: Any) -> list[Hash32]:
    if type(value) is not list:
        raise invalid_params("blobVersionedHashes: an array is expected")
    return [decode_hash(member) for member in value]


_MEMBERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "from": ("sender", decode_address),
    "to": ("to", decode_address),
    "gas": ("gas", decode_gas),
    "value": ("value", decode_quantity),
    "data": ("input", decode_data),
    "input": ("input", decode_data),
    "nonce": ("nonce", _u64),
    "gasPrice": ("gas_price", _u128),
    "maxFeePerGas": ("max_fee_per_gas", _u128),
    "maxPriorityFeePerGas": ("max_priority_fee_per_gas", _u128),
    "maxFeePerBlobGas": ("max_fee_per_blob_gas", _u128),
    "blobVersionedHashes": ("blob_hashes", _hashes),
    "accessList": ("access_list", _access_list),
    "authorizationList": ("authorizations", _authorizations),
    "chainId": ("chain_id", decode_quantity),
    "strict": ("is_strict", decode_boolean),
}


def decode_call(value: object) -> Call:
    """Decode a call object. `data` and `input` are synonyms; if both are given, they must be equal."""
    if type(value) is not dict:
        raise invalid_params("call: an object is expected")
    fields: dict[str, Any] = {}
    for name, raw in value.items():
        member = _MEMBERS.get(name)
        if member is None or raw is None:
            continue
        field, decode = member
        decoded = decode(raw)
        if field == "input" and fields.get(field, decoded) != decoded:
            raise invalid_params("call: data and input differ")
        fields[field] = decoded
    call = Call.__new__(Call)
    call.__dict__ = fields
    return call


def decode_state_overrides(value: object) -> tuple[AccountOverride, ...]:
    """Decode state overrides by address. `state` replaces all storage of an account, `stateDiff` replaces some slots;
    using both is an error.
    """
    if type(value) is not dict or not all(type(raw) is dict for raw in value.values()):
        raise invalid_params("state overrides: an object with an object for each address is expected")
    return tuple(_account_override(decode_address(name), raw) for name, raw in value.items())


def _account_override(address: Address, raw: Mapping[str, Any]) -> AccountOverride:
    if raw.get("state") is not None and raw.get("stateDiff") is not None:
        raise invalid_params("state overrides: state and stateDiff exclude each other")
    return AccountOverride(
        address=address,
        balance=_optional(raw, "balance", decode_quantity),
        nonce=_optional(raw, "nonce", _u64),
        code=_optional(raw, "code", decode_data),
        state=_optional(raw, "state", _slots),
        state_diff=_optional(raw, "stateDiff", _slots),
        precompile_target=_optional(raw, "movePrecompileToAddress", decode_address),
    )


def decode_block_overrides(value: object) -> EnvOverrides:
    """Decode the block fields that a call sees instead of the real fields."""
    if type(value) is not dict:
        raise invalid_params("block overrides: an object is expected")
    return EnvOverrides(
        number=_optional(value, "number", _u64),
        timestamp=_optional(value, "time", _u64),
        gas_limit=_optional(value, "gasLimit", _u64),
        beneficiary=_renamed(value, "feeRecipient", "coinbase", decode_address),
        mix_hash=_renamed(value, "prevRandao", "random", decode_slot),
        base_fee=_renamed(value, "baseFeePerGas", "baseFee", _u64),
        blob_base_fee=_optional(value, "blobBaseFee", _u64),
    )


def _renamed(value: Mapping[str, Any], name: str, older: str, decode: Callable[[Any], Any]) -> Any:
    """Decode a member that clients send under its name in the specification, or under the older name of geth."""
    return _optional(value, older if value.get(name) is None else name, decode)


def _optional(value: Mapping[str, Any], name: str, decode: Callable[[Any], Any]) -> Any:
    raw = value.get(name)
    return None if raw is None else decode(raw)


def _slots(value: Any) -> list[tuple[Hash32, Hash32]]:
    if type(value) is not dict:
        raise invalid_params("state overrides: storage is an object")
    return [(decode_slot(slot), decode_slot(word)) for slot, word in value.items()]


def _objects(value: Any, what: str) -> list[dict[str, Any]]:
    if type(value) is not list or not all(type(entry) is dict for entry in value):
        raise invalid_params(f"{what}: an array of objects is expected")
    return value


def _array(entry: Mapping[str, Any], name: str) -> list[Any]:
    value = entry.get(name)
    if value is not None and type(value) is not list:
        raise invalid_params(f"{name}: an array is expected")
    return value or []


CALL_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "from": {"type": "string", "description": "caller, default the zero address"},
        "to": {"type": "string", "description": "recipient; without one a contract is created"},
        "gas": {"type": "string", "description": "gas, default the gas limit of the block"},
        "gasPrice": {"type": "string"},
        "maxFeePerGas": {"type": "string"},
        "maxPriorityFeePerGas": {"type": "string"},
        "value": {"type": "string", "description": "wei to send"},
        "data": {"type": "string", "description": "input; `input` is a synonym"},
        "nonce": {"type": "string"},
        "accessList": {"type": "array"},
        "maxFeePerBlobGas": {"type": "string"},
        "blobVersionedHashes": {"type": "array"},
        "authorizationList": {"type": "array"},
        "chainId": {"type": "string", "description": "if given, must be the chain id of this node"},
        "strict": {"type": "boolean", "description": "false: do not compare the cost with the balance of the caller"},
    },
}
_STATE_OVERRIDES_SCHEMA: Final = {
    "type": "object",
    "description": "by address",
    "additionalProperties": {
        "type": "object",
        "properties": {
            "balance": {"type": "string"},
            "nonce": {"type": "string"},
            "code": {"type": "string"},
            "state": {"type": "object", "description": "replaces the whole storage"},
            "stateDiff": {"type": "object", "description": "replaces some slots"},
            "movePrecompileToAddress": {"type": "string", "description": "new address of this precompile"},
        },
    },
}
_BLOCK_OVERRIDES_SCHEMA: Final = {
    "type": "object",
    "properties": {
        name: {"type": "string"}
        for name in ("number", "time", "gasLimit", "feeRecipient", "prevRandao", "baseFeePerGas", "blobBaseFee")
    },
}


def _call_object(value: Any) -> dict[str, Any]:
    """Check only that the value is an object. The fast path decodes plain calls; `decode_call` decodes
    all other calls.
    """
    if type(value) is not dict:
        raise invalid_params("call: an object is expected")
    return value


CallParam = Annotated[Call, WireType("call", "call object", CALL_SCHEMA, decode_call)]
CallObjectParam = Annotated[dict[str, Any], WireType("call", "call object", CALL_SCHEMA, _call_object)]
StateOverridesParam = Annotated[
    tuple[AccountOverride, ...] | None,
    WireType(
        "state overrides", "replaced parts of accounts, by address", _STATE_OVERRIDES_SCHEMA, decode_state_overrides
    ),
]
BlockOverridesParam = Annotated[
    EnvOverrides | None,
    WireType("block overrides", "replaced fields of the block", _BLOCK_OVERRIDES_SCHEMA, decode_block_overrides),
]

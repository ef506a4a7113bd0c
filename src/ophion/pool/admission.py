"""Admission checks of json-rpc.md 5.5 as one list. The first failure decides.

Each check is a small function with its own error; `CHECKS` lists the rules in order. Checks read the decoded
transaction, the sender's account and the head (`PoolHead`), and change nothing. Afterwards `admitter.py` compares the
transaction with other pooled transactions (known, underpriced).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from ophion.chain.gas_price import FeeFloor
from ophion.errors import PoolRejected
from ophion.native.executor import State
from ophion.native.transactions import Bounds, Transaction
from ophion.permissions.set_code_authorities import SET_CODE_TYPE, authorities
from ophion.primitives.types import Address

TRANSACTION_GAS_CAP = 2**24
"""Maximum gas limit of a transaction from Osaka on (EIP-7825)."""

BLOB_TYPE = 3
_BLOB_VERSION = 1
_LAST_NONCE = 2**64 - 1
_MAX_FAST_PRICE = 2**127
"""Prices from this value on take the slow path, because the Rust extension compares 128-bit numbers."""
_NO_SENDER = "signature: no public key"
"""Prefix of the Rust extension's error for a well-formed signature from which no sender can be recovered."""

_FORKS = (
    "frontier",
    "homestead",
    "tangerine",
    "spurious",
    "byzantium",
    "constantinople",
    "petersburg",
    "istanbul",
    "berlin",
    "london",
    "paris",
    "shanghai",
    "cancun",
    "prague",
    "osaka",
)
_RANK = {fork: rank for rank, fork in enumerate(_FORKS)}
_TYPE_FROM = (0, _RANK["berlin"], _RANK["london"], _RANK["cancun"], _RANK["prague"])
"""Rank of the first fork that accepts each transaction type, by type number."""


class PoolHead(Struct, frozen=True):
    """What the pool knows of the head: its state, and the rules and the base fee of the next block."""

    fork: str
    """Fork of the next block, in the Rust extension's spelling."""
    chain_id: int | None
    """Chain id. None before EIP-155, when transactions have no chain id."""
    gas_limit: int
    """Gas limit of the head."""
    base_fee: int
    """Base fee of the next block. 0 before London."""
    init_code_limit: int | None
    """Maximum size of creation code from Shanghai on (EIP-3860); None for no limit."""
    state: State | None
    """State of the head; None if the node does not have this state, as during initial sync."""
    blob_limit: int = 0
    """Maximum number of blobs per transaction."""
    has_gas_cap: bool = True
    """Whether the cap of EIP-7825 limits a transaction's gas."""
    has_still_base_fee: bool = False
    """Whether the base fee is constant. A transaction below a constant base fee would wait forever."""


class AdmissionContext(Struct, frozen=True):
    """The limits and prices that the checks use. Created anew for each head."""

    head: PoolHead
    floor: FeeFloor
    fee_cap: int
    """Maximum fee of a local transaction in wei; 0 for no cap."""
    needs_chain_id: bool
    """Whether local transactions need a chain id (EIP-155)."""
    rank: int
    """Position of the fork of the next block in the order of all forks."""
    bounds: Bounds | None
    """Limits for the fast path (`fast_path.py`). If None, every transaction takes the slow path with all checks."""
    least: tuple[int, int]
    """The minimum prices from which `bounds` was computed."""

    @classmethod
    def at(cls, head: PoolHead, floor: FeeFloor, fee_cap: int, needs_chain_id: bool = False) -> AdmissionContext:
        rank, least = _RANK[head.fork], (floor.min_gas_price, floor.min_priority_fee)
        return cls(head, floor, fee_cap, needs_chain_id, rank, _bounds(head, rank, least, fee_cap), least)

    def with_current_prices(self) -> AdmissionContext:
        """Return a context for the current minimum prices."""
        return AdmissionContext.at(self.head, self.floor, self.fee_cap, self.needs_chain_id)


def _is_capped(head: PoolHead, rank: int) -> bool:
    return head.has_gas_cap and rank >= _RANK["osaka"]


def _bounds(head: PoolHead, rank: int, least: tuple[int, int], fee_cap: int) -> Bounds | None:
    """Return `CHECKS` as numeric limits for the fast path. None if the head lacks a value or a limit is too large."""
    if head.chain_id is None or head.state is None:
        return None
    if max(head.chain_id, head.gas_limit) > _LAST_NONCE or max(head.base_fee, *least) >= _MAX_FAST_PRICE:
        return None
    price, tip = least
    return Bounds(
        fork=head.fork,
        chain_id=head.chain_id,
        # the fast path excludes set-code transactions, because only the slow path checks their authorities
        last_type=max(type for type, since in enumerate(_TYPE_FROM[:SET_CODE_TYPE]) if rank >= since),
        max_gas=min(head.gas_limit, TRANSACTION_GAS_CAP) if _is_capped(head, rank) else head.gas_limit,
        base_fee=head.base_fee,
        min_fee=max(price, head.base_fee) if head.has_still_base_fee else price,
        min_price=price,
        min_tip=tip,
        max_total_fee=fee_cap or None,
        max_init_code=head.init_code_limit,
    )


class AdmissionRequest(Struct, eq=False, gc=False):
    """A transaction under check. Its fields are read from the Rust extension in one call."""

    transaction: Transaction
    is_local: bool
    hash: bytes
    sender: Address
    type: int
    chain_id: int | None
    nonce: int
    gas_limit: int
    max_fee: int
    max_tip: int
    cost: int
    """Maximum cost for the sender: gas, value and blobs."""
    size: int
    """Size of the transaction in a block, in bytes."""
    intrinsic_gas: int
    is_low_s: bool

    @classmethod
    def of(cls, transaction: Transaction, fork: str, is_local: bool) -> AdmissionRequest:
        return cls(transaction, is_local, *transaction.admission_values(fork))


Account: TypeAlias = tuple[int, int, str | None]
"""(nonce, balance, refusal) at the head. The refusal is None for an account that may send."""

Check: TypeAlias = Callable[[AdmissionRequest, AdmissionContext], PoolRejected | None]


def undecodable(reason: str) -> PoolRejected:
    """Return the error for bytes that are not a transaction, or for a signature without a sender."""
    if reason.startswith(_NO_SENDER):
        return PoolRejected("invalid-signature", "Invalid signature")
    return PoolRejected("malformed", reason)


def blobs_are_there(transaction: Transaction, raw: bytes) -> PoolRejected | None:
    """Check that a client sends a blob transaction with its blobs. Without blobs, the transaction is valid only
    inside a block.
    """
    if raw[0] == BLOB_TYPE and len(raw) == len(transaction.raw):
        return PoolRejected("malformed", "the blobs of a blob transaction are missing")
    return None


def type_is_active(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    if request.type and (request.type >= len(_TYPE_FROM) or context.rank < _TYPE_FROM[request.type]):
        return PoolRejected("type-not-supported", f"Transaction type {request.type} is not valid at this fork")
    return None


def signature_names_a_chain(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    """Check `v` of a legacy transaction: 27, 28 or at least 37, because chain ids start at 1."""
    if not request.type and request.chain_id == 0:
        return PoolRejected("malformed", "v of a signature is 27, 28 or at least 37")
    return None


def parts_are_there(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    """Check that the transaction has all fields that its type requires."""
    if request.type < BLOB_TYPE:
        return None
    if request.type == SET_CODE_TYPE:
        if not request.transaction.authorization_count:
            return PoolRejected("no-authorizations", "Set-code transaction without authorizations")
        return None
    hashes = request.transaction.blob_hashes
    if not hashes:
        return PoolRejected("blob-count", "Blob transaction without blobs")
    if len(hashes) > context.head.blob_limit:
        return PoolRejected("blob-count", f"Transaction has more than {context.head.blob_limit} blobs")
    if any(hash[0] != _BLOB_VERSION for hash in hashes):
        return PoolRejected("blob-version", "Blob hash of an unknown version")
    return None


def price_reaches_floor(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    """Compare the price in the next block with the node's minimum price. `FeeOracle` uses the same rule."""
    base_fee, floor = context.head.base_fee, context.floor
    if request.max_fee < floor.min_gas_price or (request.type > 1 and request.max_tip < floor.required_tip(base_fee)):
        return PoolRejected("gas-price-too-low", "Gas price below configured minimum gas price")
    if context.head.has_still_base_fee and request.max_fee < base_fee:
        return PoolRejected("base-fee", "Gas price below current base fee")
    return None


def tip_is_within_fee(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    if request.max_tip > request.max_fee:
        return PoolRejected("tip-above-fee", "Max priority fee per gas exceeds max fee per gas")
    return None


def chain_id_fits(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    """Check the chain id. A local transaction without a chain id (before EIP-155) is refused if the node requires chain
    ids.
    """
    chain_id = request.chain_id
    if chain_id is None and context.needs_chain_id and request.is_local and context.head.chain_id is not None:
        return PoolRejected("chain-id-required", "ChainId is required")
    if chain_id is None or chain_id == context.head.chain_id:
        return None
    if context.head.chain_id is None:
        return PoolRejected("chain-id-not-supported", "ChainId not supported")
    return PoolRejected("wrong-chain-id", "Wrong chainId")


def signature_is_low(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    """Check that `s` of the signature is at most half the curve order, from Homestead on (EIP-2)."""
    if context.rank and not request.is_low_s:
        return PoolRejected("invalid-signature", "Invalid signature")
    return None


def gas_covers_intrinsic(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    if request.intrinsic_gas > request.gas_limit:
        return PoolRejected("intrinsic-gas", "Intrinsic gas exceeds gas limit")
    return None


def gas_fits_block(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    if request.gas_limit > context.head.gas_limit:
        return PoolRejected("gas-limit", "Transaction gas limit exceeds block gas limit")
    if request.gas_limit > TRANSACTION_GAS_CAP and _is_capped(context.head, context.rank):
        return PoolRejected("gas-limit-cap", f"Transaction gas limit exceeds {TRANSACTION_GAS_CAP} (EIP-7825)")
    return None


def nonce_is_possible(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    """Check that the nonce is below 2**64 - 1 (EIP-2681)."""
    if request.nonce == _LAST_NONCE:
        return PoolRejected("nonce-overflow", "Nonce must be less than 2^64-1")
    return None


def init_code_fits(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    limit = context.head.init_code_limit
    # Each byte of init code costs more than 1 gas. So with less gas than `limit`, the init code is shorter than
    # `limit`.
    if limit is None or request.gas_limit < limit or request.transaction.to is not None:
        return None
    if len(request.transaction.input) > limit:
        return PoolRejected("init-code", f"Creation code is longer than {limit} bytes")
    return None


def fee_is_capped(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    if context.fee_cap and request.is_local and request.max_fee * request.gas_limit > context.fee_cap:
        return PoolRejected("fee-cap", "Transaction fee cap exceeded")
    return None


def state_is_here(request: AdmissionRequest, context: AdmissionContext) -> PoolRejected | None:
    if context.head.state is None:
        return PoolRejected("syncing", "Initial sync is still in progress", transient=True)
    return None


def sender_can_pay(request: AdmissionRequest, account: Account) -> PoolRejected | None:
    if request.cost > account[1]:
        return PoolRejected("upfront-cost", "Upfront cost exceeds account balance")
    return None


def nonce_is_new(request: AdmissionRequest, account: Account) -> PoolRejected | None:
    if request.nonce < account[0]:
        return PoolRejected("nonce-too-low", "Nonce too low")
    return None


def sender_is_permitted(request: AdmissionRequest, account: Account) -> PoolRejected | None:
    return not_authorized(account[2])


def not_authorized(reason: str | None) -> PoolRejected | None:
    """Return the error for a sender that may not send for this reason; None if there is no reason."""
    if reason is not None:
        return PoolRejected("not-authorized", "Sender account not authorized to send transactions", detail=reason)
    return None


def authorities_are_permitted(
    request: AdmissionRequest, account_of: Callable[[Address], Account]
) -> PoolRejected | None:
    """Check that all authorities (EIP-7702) may send, so that a permitted sender cannot change other accounts."""
    for authority in authorities(request.transaction):
        refusal = account_of(authority)[2]
        if refusal is not None:
            detail = f"authorization in the transaction: {refusal}"
            return PoolRejected("not-authorized", "Sender account not authorized to send transactions", detail=detail)
    return None


CHECKS: tuple[Check, ...] = (
    signature_names_a_chain,
    type_is_active,
    parts_are_there,
    price_reaches_floor,
    tip_is_within_fee,
    chain_id_fits,
    signature_is_low,
    gas_covers_intrinsic,
    gas_fits_block,
    nonce_is_possible,
    init_code_fits,
    fee_is_capped,
    state_is_here,
)
"""Checks that do not need the sender's account, in order."""

ACCOUNT_CHECKS: tuple[Callable[[AdmissionRequest, Account], PoolRejected | None], ...] = (
    sender_can_pay,
    nonce_is_new,
    sender_is_permitted,
)
"""Checks of the sender's account, in order, after `CHECKS`."""


def judge(
    request: AdmissionRequest, context: AdmissionContext, account_of: Callable[[Address], Account]
) -> PoolRejected | None:
    """Return the error of the first rule that the transaction breaks, or None."""
    for check in CHECKS:
        refusal = check(request, context)
        if refusal is not None:
            if check is price_reaches_floor and context.head.state is not None:
                # Besu reports "nonce too low" before a price error, so check the nonce here
                return nonce_is_new(request, account_of(request.sender)) or refusal
            return refusal
    account = account_of(request.sender)
    for account_check in ACCOUNT_CHECKS:
        refusal = account_check(request, account)
        if refusal is not None:
            return refusal
    return authorities_are_permitted(request, account_of) if request.type == SET_CODE_TYPE else None

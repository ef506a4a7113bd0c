"""eth_simulateV1: executes blocks of calls on top of an existing block without storing them (json-rpc.md 7.1).

    request -> blocks in order, gaps filled -> header, overrides, calls -> extension -> header complete -> object

A simulated block is complete except for its seal: it has a hash, its successor names it as parent, and BLOCKHASH finds
it. Headers are hashed in the standard form on all networks, because they have no seal.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from ophion.chain.ancestor_hashes import MAX_BYTES, ancestor_hashes
from ophion.chain.block_environment import EnvOverrides, block_env
from ophion.chain.queries import BlockView
from ophion.chainspec.forks import Fork, Milestone
from ophion.consensus.header_rules import next_base_fee, next_excess_blob_gas
from ophion.errors import RpcError
from ophion.native.crypto import keccak256
from ophion.native.executor import AccountOverride, BlockEnv, CallRequest, State
from ophion.native.simulation import CallRefused, SimulatedBlock, TimedOut, is_precompile, simulate_block
from ophion.native.transactions import Withdrawal
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import EMPTY_OMMERS_HASH, EMPTY_TRIE_ROOT, Address, Hash32
from ophion.rpc.errors import (
    INTERNAL_ERROR_CODE,
    LIMIT_EXCEEDED_CODE,
    SERVER_ERROR_CODE,
    TIMEOUT_EXPIRED,
    invalid_params,
    reverted,
)
from ophion.rpc.schema import render
from ophion.rpc.schema.wire_types import decode_address, decode_boolean, decode_hash, decode_quantity
from ophion.rpc.services.call_object import Call, decode_block_overrides, decode_call, decode_state_overrides
from ophion.rpc.services.context import RpcContext

MAX_BLOCKS: Final = 256
GAS_BUDGET: Final = 50_000_000
"""Maximum gas of all calls of a simulation together. The gas cap of the node may be lower."""
_SECONDS_PER_BLOCK: Final = 12
_VM_ERROR_CODE: Final = -32015
_ZERO_HASH: Final = bytes(32)
_MAX_UINT64: Final = 2**64 - 1

_REFUSALS: Final[Mapping[str, int]] = {
    "nonce-low": -38010,
    "nonce-high": -38011,
    "fee-below-base": -38012,
    "intrinsic-gas": -38013,
    "balance": -38014,
    "block-gas": -38015,
    "nonce": INTERNAL_ERROR_CODE,
    "tip-above-fee": -32602,
    "init-code": -38025,
}
"""JSON-RPC codes of the errors that fail the whole request, by the name of the error in the Rust extension."""
_ANVIL_REFUSALS: Final[Mapping[str, tuple[int, str]]] = {
    "intrinsic-gas": (SERVER_ERROR_CODE, "intrinsic gas too high -- CallGasCostMoreThanGasLimit"),
    "balance": (-32003, "Insufficient funds for gas * price + value"),
}
"""Code and text of Anvil, for the errors that viem recognises by Anvil's text."""


class BlockRequest(Struct, frozen=True):
    """One block of an eth_simulateV1 request."""

    overrides: EnvOverrides
    beacon_root: Hash32 | None
    withdrawals: Sequence[Withdrawal]
    accounts: Sequence[AccountOverride]
    overridden: Sequence[Address]
    moves: Sequence[tuple[Address, Address]]
    calls: Sequence[Call]


class Simulation(Struct, frozen=True):
    """An eth_simulateV1 request, decoded: simulated blocks and flags."""

    blocks: Sequence[BlockRequest]
    with_transfers: bool
    is_validating: bool
    in_full: bool


# --- decoding ------------------------------------------------------------------------------------


def decode_simulation(value: object) -> Simulation:
    """Decode the payload of eth_simulateV1."""
    if type(value) is not dict:
        raise invalid_params("simulation: an object is expected")
    blocks = value.get("blockStateCalls")
    if type(blocks) is not list or not all(type(block) is dict for block in blocks):
        raise invalid_params("blockStateCalls: an array of objects is expected")
    if not blocks:
        raise invalid_params("blockStateCalls: empty input")
    if len(blocks) > MAX_BLOCKS:
        raise RpcError(LIMIT_EXCEEDED_CODE, "too many blocks")
    return Simulation(
        [_decode_block(block) for block in blocks],
        _flag(value, "traceTransfers"),
        _flag(value, "validation"),
        _flag(value, "returnFullTransactions"),
    )


def _flag(value: Mapping[str, Any], name: str) -> bool:
    raw = value.get(name)
    return raw is not None and decode_boolean(raw)


def _decode_block(value: Mapping[str, Any]) -> BlockRequest:
    fields = value.get("blockOverrides") or {}
    overrides = decode_block_overrides(fields)
    root = fields.get("beaconRoot", fields.get("parentBeaconBlockRoot"))
    accounts = value.get("stateOverrides") or {}
    if type(accounts) is not dict or not all(type(one) is dict for one in accounts.values()):
        raise invalid_params("stateOverrides: an object with an object for each address is expected")
    moves = [
        (decode_address(name), decode_address(one["movePrecompileToAddress"]))
        for name, one in accounts.items()
        if one.get("movePrecompileToAddress") is not None
    ]
    calls = value.get("calls")
    if calls is not None and type(calls) is not list:
        raise invalid_params("calls: an array is expected")
    return BlockRequest(
        overrides=overrides,
        beacon_root=None if root is None else decode_hash(root),
        withdrawals=[_decode_withdrawal(one) for one in fields.get("withdrawals") or ()],
        accounts=decode_state_overrides(accounts),
        overridden=[decode_address(name) for name in accounts],
        moves=moves,
        calls=[decode_call(call) for call in calls or ()],
    )


def _decode_withdrawal(raw: object) -> Withdrawal:
    if type(raw) is not dict:
        raise invalid_params("withdrawals: an array of objects is expected")
    index, validator, amount = (decode_quantity(raw.get(name)) for name in ("index", "validatorIndex", "amount"))
    if max(index, validator, amount) > _MAX_UINT64:
        raise invalid_params("withdrawals: numbers of at most 64 bits are expected")
    return Withdrawal(index, validator, decode_address(raw.get("address")), amount)


# --- the chain of blocks -------------------------------------------------------------------------


def in_order(blocks: Iterable[BlockRequest], base: Header, *, fills_gaps: bool = True) -> list[BlockRequest]:
    """Return the blocks with number and time set. Empty blocks fill the gaps, unless `fills_gaps` is false."""
    empty = BlockRequest(EnvOverrides(), None, (), (), (), (), ())
    ordered: list[BlockRequest] = []
    number, timestamp = base.number, base.timestamp
    for block in blocks:
        next_number = block.overrides.number
        next_number = number + 1 if next_number is None else next_number
        if next_number <= number:
            raise RpcError(-38020, f"block numbers must be in order: {next_number} <= {number}")
        if next_number > _MAX_UINT64:
            raise RpcError(-38020, f"block numbers must be at most {_MAX_UINT64}")
        if fills_gaps and next_number - base.number > MAX_BLOCKS:
            raise RpcError(LIMIT_EXCEEDED_CODE, "too many blocks")
        while fills_gaps and number + 1 < next_number:
            number, timestamp = number + 1, timestamp + _SECONDS_PER_BLOCK
            ordered.append(replace(empty, overrides=EnvOverrides(number=number, timestamp=timestamp)))
        next_timestamp = block.overrides.timestamp
        next_timestamp = timestamp + _SECONDS_PER_BLOCK if next_timestamp is None else next_timestamp
        if next_timestamp <= timestamp:
            raise RpcError(-38021, f"block timestamps must be in order: {next_timestamp} <= {timestamp}")
        if next_timestamp > _MAX_UINT64:
            raise RpcError(-38021, f"block timestamps must be at most {_MAX_UINT64}")
        number, timestamp = next_number, next_timestamp
        ordered.append(replace(block, overrides=replace(block.overrides, number=number, timestamp=timestamp)))
    return ordered


class Simulator:
    """Runs one simulation, in a worker thread."""

    def __init__(self, ctx: RpcContext, base: BlockView, simulation: Simulation) -> None:
        self._ctx = ctx
        self._is_anvil = ctx.is_anvil
        self._spec = ctx.queries.spec
        self._simulation = simulation
        self._state: State = base.state
        self._parent = base.header
        self._parent_hash: Hash32 = base.hash if base.hash is not None else keccak256(base.header.encode())
        parent = HashedHeader(self._parent, self._parent_hash)
        self._hashes = ancestor_hashes(ctx.queries.store, ctx.queries.chain.header, parent)
        self._gas_left = min(GAS_BUDGET, ctx.limits.gas_cap or GAS_BUDGET)
        self._end = time.monotonic() + ctx.limits.timeout_s

    def run(self) -> bytes:
        """Return the array of block objects as JSON text. With the preset of Anvil there are no blocks in gaps."""
        blocks = in_order(self._simulation.blocks, self._parent, fills_gaps=not self._is_anvil)
        return orjson.dumps([self._block(block) for block in blocks])

    def _block(self, block: BlockRequest) -> dict[str, Any]:
        draft = self._draft(block)
        missing = min(draft.number - self._parent.number - 1, MAX_BLOCKS)
        self._hashes = (_ZERO_HASH * missing + self._hashes)[:MAX_BYTES]
        fork = self._spec.fork_of(draft)
        env = block_env(
            self._spec,
            self._ctx.queries.chain.rules,
            draft,
            draft.coinbase,
            self._hashes,
            EnvOverrides(blob_base_fee=block.overrides.blob_base_fee),
        )
        done = self._simulate(block, env, draft)
        header = _completed(draft, done, fork)
        block_hash = keccak256(header.encode())
        shown = self._shown(header, block_hash, done)
        self._state = done.execution.state
        self._parent, self._parent_hash = header, block_hash
        self._hashes = (block_hash + self._hashes)[:MAX_BYTES]
        self._gas_left -= header.gas_used
        return shown

    def _draft(self, block: BlockRequest) -> Header:
        """Return the header fields that are known before execution."""
        parent, overrides = self._parent, block.overrides
        assert overrides.number is not None
        assert overrides.timestamp is not None
        draft = Header(
            parent_hash=self._parent_hash,
            ommers_hash=EMPTY_OMMERS_HASH,
            coinbase=parent.coinbase if overrides.beneficiary is None else overrides.beneficiary,
            state_root=_ZERO_HASH,
            transactions_root=EMPTY_TRIE_ROOT,
            receipts_root=EMPTY_TRIE_ROOT,
            logs_bloom=bytes(256),
            difficulty=parent.difficulty,
            number=overrides.number,
            gas_limit=parent.gas_limit if overrides.gas_limit is None else overrides.gas_limit,
            gas_used=0,
            timestamp=overrides.timestamp,
            extra_data=b"",
            mix_hash=_ZERO_HASH if overrides.mix_hash is None else overrides.mix_hash,
            nonce=bytes(8),
        )
        fork = self._spec.fork_of(draft)
        if not fork.has(Milestone.LONDON):
            return draft
        is_cancun = fork.blobs is not None
        return replace(
            draft,
            base_fee_per_gas=self._base_fee(overrides.base_fee),
            withdrawals_root=EMPTY_TRIE_ROOT if fork.has(Milestone.SHANGHAI) else None,
            blob_gas_used=0 if is_cancun else None,
            excess_blob_gas=None if fork.blobs is None else next_excess_blob_gas(parent, fork, fork.blobs),
            parent_beacon_block_root=(block.beacon_root or _ZERO_HASH) if is_cancun else None,
        )

    def _base_fee(self, requested: int | None) -> int:
        """Return the base fee of a simulated block. If the request has none, the base fee follows the protocol with
        validation and is 0 without validation.
        """
        if requested is not None:
            return requested
        if not self._simulation.is_validating or self._spec.zero_base_fee:
            return 0
        return next_base_fee(self._parent, self._spec)

    def _simulate(self, block: BlockRequest, env: BlockEnv, draft: Header) -> SimulatedBlock:
        _check_moves(block, env)
        try:
            return simulate_block(
                self._state,
                env,
                [_with_open_ends(self._priced(call, draft)) for call in block.calls],
                overrides=block.accounts,
                withdrawals=None if draft.withdrawals_root is None else block.withdrawals,
                rewards=self._ctx.queries.engine.rewards(HashedHeader(draft, self._parent_hash), ()),
                validation=self._simulation.is_validating,
                transfers=self._simulation.with_transfers,
                gas_left=self._gas_left,
                deadline_s=self._end - time.monotonic(),
            )
        except CallRefused as error:
            code, _, text = str(error).partition(": ")
            if self._is_anvil and code in _ANVIL_REFUSALS:
                raise RpcError(*_ANVIL_REFUSALS[code]) from error
            raise RpcError(_REFUSALS.get(code, SERVER_ERROR_CODE), f"err: {text}") from error
        except TimedOut as error:
            raise TIMEOUT_EXPIRED() from error

    def _priced(self, call: Call, draft: Header) -> Call:
        """Return the call. If it has blobs but no blob gas price, and validation is off, add the price of the block."""
        if not call.blob_hashes or call.max_fee_per_blob_gas is not None or self._simulation.is_validating:
            return call
        return call.paying_for_blobs(self._ctx.queries.blob_base_fee(draft) or 1)

    def _shown(self, header: Header, block_hash: Hash32, done: SimulatedBlock) -> dict[str, Any]:
        rendered = done.render(block_hash, header.number, header.timestamp, header.base_fee_per_gas)
        body = done.body
        transactions: list[Any] = [
            orjson.Fragment(text) if self._simulation.in_full else data(transaction.hash)
            for (_, text), transaction in zip(rendered, body.transactions, strict=True)
        ]
        size = len(body.encode_block(header.encode()))
        shown = render.block_object(header, block_hash, None, size, (), transactions, body.withdrawals)
        shown["calls"] = [_call_result(call, logs) for call, (logs, _) in zip(done.calls(), rendered, strict=True)]
        return shown


def _with_open_ends(call: Call) -> tuple[CallRequest, int | None, int | None, bool]:
    """Return a call for the Rust extension as a tuple: request, gas, nonce, and whether the call has a gas price.

    Gas or nonce is None if the call does not set it.
    """
    gas = None if call.gas is None else min(call.gas, _MAX_UINT64)
    return call.request(gas or 0), gas, call.nonce, call.gas_price is not None


def _check_moves(block: BlockRequest, env: BlockEnv) -> None:
    for source, target in block.moves:
        if not is_precompile(env, source):
            raise RpcError(SERVER_ERROR_CODE, f"account {data(source)} is not a precompile")
        if source == target:
            raise RpcError(-38022, f"account {data(source)} cannot be moved onto itself")
        if target in block.overridden:
            raise RpcError(SERVER_ERROR_CODE, f"account {data(target)} is already overridden")


def _completed(draft: Header, done: SimulatedBlock, fork: Fork) -> Header:
    """Return the header with the fields that are known only after execution, such as roots and gas used."""
    execution, body = done.execution, done.body
    header = replace(
        draft,
        state_root=execution.state_root,
        transactions_root=body.transactions_root,
        receipts_root=execution.receipts_root,
        logs_bloom=execution.logs_bloom,
        gas_used=execution.gas_used,
        requests_hash=execution.requests_hash,
    )
    if draft.withdrawals_root is not None:
        header = replace(header, withdrawals_root=body.withdrawals_root)
    return replace(header, blob_gas_used=execution.blob_gas_used) if fork.blobs is not None else header


def _call_result(call: tuple[str, bytes, int, int, str], logs: bytes) -> dict[str, Any]:
    kind, output, gas_used, max_used_gas, reason = call
    result: dict[str, Any] = {
        "returnData": data(output if kind == "returned" else b""),
        "logs": orjson.Fragment(logs),
        "gasUsed": quantity(gas_used),
        "maxUsedGas": quantity(max_used_gas),
        "status": "0x1" if kind == "returned" else "0x0",
    }
    if kind == "reverted":
        error = reverted(output)
        result["error"] = {"message": error.message, "code": error.code, "data": error.data}
    elif kind == "halted":
        result["error"] = {"message": reason, "code": _VM_ERROR_CODE}
    return result

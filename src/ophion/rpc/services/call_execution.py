"""Executes call objects: quick calls on the event loop, all others in the read lane.

A plain call takes a few microseconds, less than a switch to another thread. `CallCosts` records which calls are quick.
A call on the event loop has a short deadline. If the call misses it, it runs again in the lane, with the
deadline of the request. Gas and state are the same in both places, so the result is the same too.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from ophion.chain.queries import BlockView
from ophion.chainspec.forks import Milestone
from ophion.dev.execution_observer import ObservedCall
from ophion.errors import RpcError
from ophion.native.executor import (
    AccountOverride,
    BlockEnv,
    CallOutcome,
    CallRequest,
    State,
    call,
    console_reads,
    create_access_list,
    estimate_gas,
)
from ophion.pool.admission import TRANSACTION_GAS_CAP
from ophion.primitives.hexcodec import quantity
from ophion.rpc.errors import (
    BASE_FEE_TOO_LOW,
    INCORRECT_NONCE,
    INTRINSIC_GAS,
    NONCE_TOO_LOW,
    SERVER_ERROR_CODE,
    TIMEOUT_EXPIRED,
    TIP_ABOVE_FEE,
    UPFRONT_COST,
    WRONG_CHAIN_ID,
    invalid_params,
    reverted,
)
from ophion.rpc.schema import render
from ophion.rpc.services.call_object import Call
from ophion.rpc.services.context import RpcContext

INLINE_S: Final = 0.002
"""Deadline in seconds of a call on the event loop."""

_MIN_GAS: Final = 21_000
_OUT_OF_GAS: Final = "out of gas"

Overrides = Sequence[AccountOverride]
T = TypeVar("T")
S = TypeVar("S")


def gas_for(ctx: RpcContext, requested: Call, block_gas_limit: int) -> int:
    """Return the gas limit of a call: its own limit, or that of the block, but at most the cap of this node."""
    gas = requested.gas
    cap = ctx.limits.gas_cap or block_gas_limit
    if gas is None:
        gas = block_gas_limit
    return gas if gas < cap else cap


def check_chain(ctx: RpcContext, requested: Call) -> None:
    """Reject a call with the chain id of another network."""
    if requested.chain_id is not None and requested.chain_id != ctx.queries.spec.chain_id:
        raise WRONG_CHAIN_ID()


def checked(ctx: RpcContext, requested: Call) -> Call:
    """Check the chain id. If the call has blobs but no blob gas price, use the price of the next block."""
    check_chain(ctx, requested)
    if requested.blob_hashes and requested.max_fee_per_blob_gas is None:
        return requested.paying_for_blobs(ctx.queries.next_blob_base_fee() or 1)
    return requested


def run_call(
    ctx: RpcContext, state: State, env: BlockEnv, gas_limit: int, requested: Call, overrides: Overrides | None
) -> bytes | Awaitable[bytes]:
    """Return the output of a call. Raises `RpcError` if the call reverts, halts or is invalid."""
    requested = checked(ctx, requested)
    request = _request(ctx, requested, gas_for(ctx, requested, gas_limit))
    accounts = overrides or ()
    if ctx.light_calls.knows(requested.to, requested.input):
        seen = console_reads()
        outcome = call(state, env, request, accounts, INLINE_S)
        kind = outcome.kind
        if ctx.dev is not None:
            _observe(ctx, "eth_call", outcome, seen, state, env, request, accounts)
        if kind == "returned":
            return outcome.output
        if kind != "timeout":
            return output_of(ctx, outcome)
        assert requested.to is not None, "a creation is not known to be light"
        ctx.light_calls.tried.wasted(requested.to, requested.input, INLINE_S)
    return _call_in_lane(ctx, state, env, request, requested, accounts)


def _request(ctx: RpcContext, requested: Call, gas: int, is_sent: bool = False) -> CallRequest:
    """Return a call in the form that the Rust extension executes. `is_sent` says that a transaction follows.

    With a preset, a call may offer any gas price, as in Anvil and Hardhat's node. With the preset `hardhat`, the
    balance of the sender limits a call only if a transaction follows.
    """
    return requested.request(gas, strict=is_sent or not ctx.is_hardhat, checks_base_fee=not ctx.has_preset)


async def _call_in_lane(
    ctx: RpcContext, state: State, env: BlockEnv, request: CallRequest, requested: Call, overrides: Overrides
) -> bytes:
    seen = console_reads()
    outcome = await ctx.lanes.read.run(lambda: call(state, env, request, overrides, ctx.limits.timeout_s))
    ctx.light_calls.record(requested.to, requested.input, outcome.gas_used)
    if ctx.dev is not None:
        _observe(ctx, "eth_call", outcome, seen, state, env, request, overrides)
    return output_of(ctx, outcome)


def output_of(ctx: RpcContext, outcome: CallOutcome) -> bytes:
    """Return the output of an executed call. Raises the error if the call failed."""
    if outcome.kind == "returned":
        return outcome.output
    raise failure_of(ctx, outcome, outcome.reason)


def _observe(
    ctx: RpcContext,
    method: str,
    outcome: CallOutcome,
    seen: int,
    state: State,
    env: BlockEnv,
    request: CallRequest,
    overrides: Overrides,
) -> None:
    """Report a call to the observer of a development node if the call failed or may have written to the console, or if
    the observer asks for all calls.

    `seen` is the value of `console_reads` before the call; a later change means that a contract wrote to the console.
    """
    observer = None if ctx.dev is None else ctx.dev.observer
    if observer is None:
        return
    is_shown = observer.shows_all and outcome.kind == "returned"
    if is_shown or outcome.kind in ("reverted", "halted") or console_reads() != seen:
        observer.on_call(ObservedCall(method, state, env, request, overrides))


async def run_estimate(
    ctx: RpcContext,
    state: State,
    env: BlockEnv,
    gas_limit: int,
    requested: Call,
    overrides: Overrides | None,
    gas_of_failing: int | None = None,
    is_sent: bool = False,
) -> int:
    """Return the gas with which a call succeeds; for a call that reverts or halts, `gas_of_failing` if it is set.
    `is_sent` says that a transaction follows.

    The upper bound is the lowest of: the given gas, the gas limit of the block, `--rpc-gas-cap`, and from Osaka on the
    cap of EIP-7825, which development nodes lift. A given gas below the minimum of any transaction is ignored, as in
    Pantheon 1.2.
    """
    requested = checked(ctx, requested)
    cap, bound = _max_gas(ctx, env, gas_limit, requested)
    request = _request(ctx, requested, cap, is_sent)
    seen = console_reads()
    gas, outcome = await _repeated(
        ctx, requested, lambda limit_s: estimate_gas(state, env, request, overrides or (), cap, limit_s), _is_timeout
    )
    if ctx.dev is not None:
        _observe(ctx, "eth_estimateGas", outcome, seen, state, env, request, overrides or ())
    if gas:
        return await _least_gas(ctx, state, env, requested, overrides or (), gas, outcome) if ctx.has_preset else gas
    if gas_of_failing is not None and outcome.kind in ("reverted", "halted"):
        return gas_of_failing
    text = "Transaction processing could not be completed due to an exception"
    if outcome.kind == "halted" and outcome.reason == _OUT_OF_GAS:
        text = f"{text}: {cap} gas do not suffice, which is {bound}"
    raise failure_of(ctx, outcome, f"{text} ({outcome.reason})" if outcome.reason else text)


async def _least_gas(
    ctx: RpcContext, state: State, env: BlockEnv, requested: Call, overrides: Overrides, gas: int, outcome: CallOutcome
) -> int:
    """Return the minimum gas with which a call succeeds, as Anvil does. `gas` is a sufficient estimate. If the deadline
    ends the search, the result is sufficient, but may be above the minimum.
    """
    if gas <= _MIN_GAS:
        return gas

    def least(limit_s: float) -> tuple[int, bool]:
        """Return the least gas that was found sufficient, and whether the deadline has ended the search."""
        end = time.monotonic() + limit_s
        low, high, middle = outcome.gas_used - 1, gas, outcome.gas_used
        while high - low > 1:
            left_s = end - time.monotonic()
            tried = call(state, env, _request(ctx, requested, middle), overrides, left_s) if left_s > 0 else None
            if tried is None or tried.kind == "timeout":
                return high, True
            low, high = (low, middle) if tried.kind == "returned" else (middle, high)
            middle = (low + high) // 2
        return high, False

    return (await _repeated(ctx, requested, least, bool))[0]


def _is_timeout(outcome: CallOutcome) -> bool:
    return outcome.kind == "timeout"


async def _repeated(
    ctx: RpcContext, requested: Call, run: Callable[[float], tuple[T, S]], is_timeout: Callable[[S], bool]
) -> tuple[T, S]:
    """Return the result of `run`, which executes one call several times and gets its deadline in seconds.

    Unless the call is known to be slow, `run` is first called on the event loop with a short deadline. `is_timeout`
    says from the second part of the result whether `run` missed it. It is then called again in a worker thread.
    """
    to, input, repeated = requested.to, requested.input, ctx.light_calls.repeated
    if to is not None and not ctx.light_calls.tried.is_heavy(to, input) and repeated.may_try(to, input):
        found = run(INLINE_S)
        is_late = is_timeout(found[1])
        repeated.note(to, input, is_late)
        if not is_late:
            return found
        repeated.wasted(to, input, INLINE_S)
    return await ctx.lanes.read.run(lambda: run(ctx.limits.timeout_s))


def _max_gas(ctx: RpcContext, env: BlockEnv, gas_limit: int, requested: Call) -> tuple[int, str]:
    """Return the upper bound of an estimate, and the name of the bound for the error message."""
    bounds = [(gas_limit, "the gas limit of the block")]
    if ctx.limits.gas_cap:
        bounds.append((ctx.limits.gas_cap, "what this node lets a call use (--rpc-gas-cap)"))
    queries = ctx.queries
    if queries.chain.caps_transaction_gas and queries.spec.fork_of(queries.next_block().header).has(Milestone.OSAKA):
        bounds.append((TRANSACTION_GAS_CAP, "the maximum of a transaction (EIP-7825)"))
    if requested.gas is not None and requested.gas >= _MIN_GAS:
        bounds.append((requested.gas, "the given gas limit"))
    return min(bounds)


async def list_access(ctx: RpcContext, view: BlockView, requested: Call, overrides: Overrides | None) -> dict[str, Any]:
    """Return the access list of a call.

    A call that reverts or halts also has an access list. Raises `RpcError` for an invalid call and after the timeout.
    """
    requested = checked(ctx, requested)
    state, env = view.state, view.env
    request = requested.request(gas_for(ctx, requested, view.header.gas_limit))
    entries, outcome = await _repeated(
        ctx, requested, lambda limit_s: create_access_list(state, env, request, overrides or (), limit_s), _is_timeout
    )
    if outcome.kind in ("invalid", "timeout"):
        raise failure_of(ctx, outcome, outcome.reason)
    result: dict[str, Any] = {"accessList": render.access_list(entries), "gasUsed": quantity(outcome.gas_used)}
    if outcome.kind != "returned":
        result["error"] = failure_of(ctx, outcome, outcome.reason).message
    return result


def failure_of(ctx: RpcContext, outcome: CallOutcome, halted: str) -> RpcError:
    """Return the error of a failed call. `halted` is the error message for an exceptional halt."""
    if ctx.is_hardhat and outcome.kind in ("reverted", "halted"):
        # lazy import: only a node with this preset needs this module
        from ophion.rpc.services.hardhat_failures import call_error

        return call_error(ctx, outcome.output, outcome.reason if outcome.kind == "halted" else "")
    if outcome.kind == "reverted":
        observer = None if ctx.dev is None else ctx.dev.observer
        return reverted(outcome.output, None if observer is None else observer.reason(outcome.output))
    if outcome.kind == "timeout":
        return TIMEOUT_EXPIRED()
    if outcome.kind == "invalid":
        return refused(outcome.reason)
    return RpcError(SERVER_ERROR_CODE, halted)


_INVALID: Final[dict[str, Callable[[str], RpcError]]] = {
    "intrinsic-gas": lambda reason: INTRINSIC_GAS(),
    "balance": lambda reason: UPFRONT_COST(),
    "tip-above-fee": lambda reason: TIP_ABOVE_FEE(),
    "fee-below-base": lambda reason: BASE_FEE_TOO_LOW(),
    "nonce-low": lambda reason: NONCE_TOO_LOW(),
    "nonce-gap": lambda reason: INCORRECT_NONCE(),
    "chain-id": lambda reason: WRONG_CHAIN_ID(),
    "other": invalid_params,
}


def refused(reason: str) -> RpcError:
    """Return the error of a call that breaks a transaction rule.

    The Rust extension reports the rule as `code: reason`.
    """
    code, _, text = reason.partition(": ")
    answer = _INVALID.get(code)
    return RpcError(SERVER_ERROR_CODE, text) if answer is None else answer(text)

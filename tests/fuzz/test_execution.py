"""Fuzz targets for execution: no numbers in a block, a call or a network cause a panic.

These targets accept every result and every error; other tests check the results. A target fails on a panic, which is
not an `Exception`, or on a call that does not return.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ophion.native.exceptions import NativeError
from ophion.native.executor import (
    AccountOverride,
    BlockEnv,
    CallRequest,
    ChainRules,
    OpenBlock,
    State,
    call,
    create_access_list,
    estimate_gas,
    execute,
    genesis_state,
)
from ophion.native.store import open_store
from ophion.native.transactions import Body, Transaction, Withdrawal, decode_transactions
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from tests.fuzz.mutate import target

MOST = 2**256 - 1
RICH, LAST = DEV_KEYS[0].address, DEV_KEYS[1].address
LOOPING, REVERTING = b"\x05" * 20, b"\x06" * 20
FORKS = """frontier homestead tangerine spurious byzantium constantinople petersburg istanbul berlin london paris
    shanghai cancun prague osaka"""
REFUSED = (NativeError, OverflowError, TypeError, ValueError)
"""Exceptions with which the extension rejects input."""

small = st.sampled_from([0, 1, 7, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1])
wide = st.one_of(small, st.sampled_from([2**64, 2**128 - 1, 2**128, MOST]))
gas = st.sampled_from([0, 21_000, 100_000, 30_000_000, 2**63, 2**64 - 1])
addresses = st.sampled_from([RICH, LAST, LOOPING, REVERTING, bytes(20), *(n.to_bytes(20, "big") for n in range(1, 20))])


@cache
def world() -> State:
    """Return a state with an account of maximum balance, an account of maximum nonce, and two contracts."""
    folder = tempfile.mkdtemp(prefix="ophion-fuzz-")
    store = open_store(Path(folder), durable=False)
    accounts: list[tuple[bytes, int, int, bytes, list[tuple[bytes, bytes]]]] = [
        (RICH, 0, MOST, b"", []),
        (LAST, 2**64 - 1, 10**20, bytes.fromhex("6001600055"), [(bytes(32), b"\xff" * 32)]),
        (LOOPING, 1, 0, bytes.fromhex("5b600056"), []),
        (REVERTING, 1, 5, bytes.fromhex("5f5ffd"), []),
    ]
    return genesis_state(store, accounts).state


TRANSACTIONS = (
    legacy_transaction(DEV_KEYS[0], 0, to=LAST, value=MOST),
    legacy_transaction(DEV_KEYS[0], 0, to=LAST, gas=2**63),
    legacy_transaction(DEV_KEYS[0], 0, to=LAST, gas=2**64 - 1, gas_price=MOST),
    legacy_transaction(DEV_KEYS[0], 2**64 - 1),
    legacy_transaction(DEV_KEYS[1], 2**64 - 1, to=None, gas=100_000),
    legacy_transaction(DEV_KEYS[0], 0, gas=30_000_000, gas_price=0),
    fee_transaction(DEV_KEYS[0], 0, max_fee=0, tip=0, gas=100_000),
    fee_transaction(DEV_KEYS[0], 0, to=None, max_fee=MOST, tip=MOST, gas=100_000),
    fee_transaction(DEV_KEYS[0], 0, max_fee=2**128 - 1, tip=2**128 - 1, gas=2**64 - 1),
)


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


environments = st.fixed_dictionaries(
    {
        "fork": st.sampled_from([*FORKS.split(), "nonsense"]),
        "number": small,
        "timestamp": small,
        "beneficiary": addresses,
        "gas_limit": st.one_of(small, st.just(30_000_000)),
        "difficulty": wide,
        "mix_hash": st.sampled_from([bytes(32), b"\xff" * 32]),
        "base_fee": optional(wide),
        "excess_blob_gas": optional(st.sampled_from([0, 1, 10**7, 2**63, 2**64 - 1])),
        "max_blobs": optional(small),
        "blob_fee_fraction": optional(st.sampled_from([0, 1, 3_338_477, 2**64 - 1])),
        "parent_beacon_root": optional(st.just(bytes(32))),
        "parent_hash": st.just(bytes(32)),
        "block_hashes": st.sampled_from([None, b"", bytes(32), bytes(33), bytes(32 * 300)]),
        "dao_fork": st.booleans(),
    }
)
networks = st.fixed_dictionaries(
    {
        "chain_id": st.sampled_from([2018, 0, 2**64 - 1]),
        "contract_size_limit": optional(small),
        "deposit_contract": optional(addresses),
        "withdrawal_request_contract": optional(addresses),
        "consolidation_request_contract": optional(addresses),
    }
)
rewards = st.sampled_from([(), ((RICH, MOST),), ((LAST, MOST), (LAST, MOST)), ((RICH, 2**256),), ((b"1", 1),)])
withdrawals = optional(st.sampled_from([(), (Withdrawal(0, 0, RICH, 2**64 - 1),)]))


@target(300)
@given(networks, environments, st.lists(st.sampled_from(TRANSACTIONS), max_size=3), rewards, withdrawals)
def test_blocks(
    network: dict[str, Any], environment: dict[str, Any], raws: list[bytes], paid: Any, withdrawn: Any
) -> None:
    try:
        env = BlockEnv(rules=ChainRules(**network), **environment)
        execution = execute(world(), env, Body.of(raws, [], withdrawn), paid, True)
        assert len(execution.state_root) == len(execution.receipts_root) == 32
        assert len(execution.receipt_statuses()) == len(raws)
    except REFUSED as error:
        assert str(error)


@target(300)
@given(networks, environments, st.lists(st.sampled_from(TRANSACTIONS), max_size=4), withdrawals, st.integers(0, 4))
def test_grown_blocks(
    network: dict[str, Any], environment: dict[str, Any], raws: list[bytes], withdrawn: Any, split: int
) -> None:
    candidates = [one for one in decode_transactions(raws) if isinstance(one, Transaction)]
    try:
        env = BlockEnv(rules=ChainRules(**network), **environment)
        block = OpenBlock(world(), env, False)
        included = 0
        for part in (candidates[:split], candidates[split:]):
            included += len(block.take(part, 1.0).included)
            block.settle()
        body, _ = block.seal(withdrawn, ())
        assert included == body.transaction_count
    except REFUSED as error:
        assert str(error)


calls = st.fixed_dictionaries(
    {
        "sender": addresses,
        "to": optional(addresses),
        "gas": gas,
        "value": st.sampled_from([0, 1, MOST]),
        "input": st.sampled_from([b"", bytes(200), b"\xff" * 300, b"\xff" * 50_000]),
        "nonce": optional(small),
        "gas_price": optional(wide),
        "max_fee_per_gas": optional(wide),
        "max_priority_fee_per_gas": optional(wide),
        "max_fee_per_blob_gas": optional(wide),
        "blob_hashes": st.sampled_from([(), (bytes(32),), (b"\x01" + bytes(31),) * 9]),
        "access_list": st.sampled_from([(), ((RICH, (bytes(32),)),), ((b"1", (b"2",)),)]),
        "authorizations": st.sampled_from(
            [
                (),
                ((1, RICH, 0, 0, 1, 1),),
                ((2**64 - 1, RICH, 2**64 - 1, 1, MOST, MOST),),
                ((2**256, RICH, 0, 300, 0, 0),),
            ]
        ),
        "check_balance": st.booleans(),
    }
)
overrides = st.sampled_from(
    [
        (),
        (AccountOverride(address=RICH, balance=MOST, nonce=2**64 - 1, code=b"\xfe", state=[(bytes(32), bytes(32))]),),
        (AccountOverride(address=REVERTING, code=b"\xef\x00", state_diff=[(bytes(32), b"\x01" * 32)]),),
    ]
)


@target(300)
@given(networks, environments, calls, overrides, gas)
def test_calls(network: dict[str, Any], environment: dict[str, Any], made: dict[str, Any], over: Any, cap: int) -> None:
    try:
        env, request = BlockEnv(rules=ChainRules(**network), **environment), CallRequest(**made)
    except REFUSED as error:
        assert str(error)
        return
    kinds = ("returned", "reverted", "halted", "invalid", "timeout")
    assert call(world(), env, request, over, 0.01).kind in kinds
    estimate, outcome = estimate_gas(world(), env, request, over, cap, 0.01)
    assert estimate >= 0
    assert outcome.kind in kinds
    if made["gas"] <= 30_000_000:
        assert create_access_list(world(), env, request, over, 0.01)[1].kind in kinds

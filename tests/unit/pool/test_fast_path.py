"""Tests the fast path of admission, compared with the slow path."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from ophion.chain.gas_price import FeeFloor
from ophion.native.executor import State
from ophion.native.transactions import Transaction, decode_transactions
from ophion.pool.admission import PoolHead
from ophion.pool.admitter import Admitter
from ophion.pool.events import Admission, Admitted, Rejected
from ophion.pool.fast_path import admit_plain
from ophion.pool.options import PoolConfig
from ophion.pool.queue import Queue
from ophion.testing.signing import (
    DEV_KEYS,
    fee_transaction,
    legacy_transaction,
    set_code_transaction,
    signed_authorization,
)

A, B, C = DEV_KEYS
GWEI = 10**9
prices = st.sampled_from([0, 1, 6, 7, 8, 999, 1000, 1001, 1007, GWEI, 10**14])


@st.composite
def transactions(draw: st.DrawFn) -> bytes:
    """Yield transactions around the limits of every check."""
    key, nonce = draw(st.sampled_from([A, B, C])), draw(st.sampled_from([0, 1, 2, 3, 2**64 - 1]))
    kind, chain_id = draw(st.sampled_from(["legacy", "fee", "set code"])), draw(st.sampled_from([2018, 2018, 1]))
    gas = draw(st.sampled_from([20_999, 21_000, 2**24, 2**24 + 1, 30_000_001]))
    if kind == "legacy":
        return legacy_transaction(key, nonce, gas_price=draw(prices), gas=gas, chain_id=chain_id)
    if kind == "fee":
        return fee_transaction(key, nonce, max_fee=draw(prices), tip=draw(prices), gas=gas, chain_id=chain_id)
    return set_code_transaction(key, nonce, [signed_authorization(C, 0, bytes(20), 0)], chain_id=chain_id)


def decoded(raw: bytes) -> Transaction:
    [transaction] = decode_transactions([raw])
    assert isinstance(transaction, Transaction), transaction
    return transaction


def shown(admission: Admission) -> tuple[bytes | None, str | None]:
    return admission.hash, admission.error.reason if isinstance(admission, Rejected) else None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(
    raws=st.lists(transactions(), min_size=1, max_size=12),
    floor=st.builds(FeeFloor, st.sampled_from([0, 1000, GWEI]), st.sampled_from([0, 5])),
    fork=st.sampled_from(["petersburg", "berlin", "london", "prague", "osaka"]),
    base_fee=st.sampled_from([0, 7, 1000, GWEI]),
    is_still=st.booleans(),
    fee_cap=st.sampled_from([0, 10**15]),
    is_local=st.booleans(),
)
def test_fast_path_agrees_with_the_checks(
    world: Callable[..., State],
    raws: list[bytes],
    floor: FeeFloor,
    fork: str,
    base_fee: int,
    is_still: bool,
    fee_cap: int,
    is_local: bool,
) -> None:
    """Two admitters, one of them without the fast path, give the same answers and the same queue."""
    state = world({A.address: (1, 10**18), B.address: (0, 10**30), C.address: (0, 10**30)})
    head = PoolHead(fork, 2018, 30_000_000, base_fee, 49_152, state, has_still_base_fee=is_still)
    config = PoolConfig(fee_cap=fee_cap)

    def refusal_of(sender: bytes) -> str | None:
        return "not listed" if sender == C.address else None

    fast, slow = (Admitter(config, floor, head, refusal_of, Queue(100)) for _ in range(2))
    slow.context = structs.replace(slow.context, bounds=None)
    batches = fast.begin_batch(), slow.begin_batch()
    for raw in raws:
        answers = [
            one.admit(decoded(raw), is_local, 1.0, batch) for one, batch in zip((fast, slow), batches, strict=True)
        ]
        assert shown(answers[0]) == shown(answers[1])
    assert list(fast.queue.by_hash) == list(slow.queue.by_hash)
    assert [item.hash for item in fast.queue.best(base_fee)] == [item.hash for item in slow.queue.best(base_fee)]
    for one, other in zip(fast.queue.by_hash.values(), slow.queue.by_hash.values(), strict=True):
        assert [getattr(one, name) for name in ("sender", "nonce", "gas_limit", "max_fee", "max_tip", "size")] == [
            getattr(other, name) for name in ("sender", "nonce", "gas_limit", "max_fee", "max_tip", "size")
        ]


@pytest.mark.parametrize("raw", [legacy_transaction(A, 0), fee_transaction(A, 0)])
def test_a_plain_transaction_takes_it(world: Callable[..., State], raw: bytes) -> None:
    head = PoolHead("osaka", 2018, 30_000_000, 0, 49_152, world({A.address: (0, 10**24)}))
    admitter = Admitter(PoolConfig(), FeeFloor(), head, lambda sender: None, Queue(100))
    assert isinstance(admit_plain(admitter, decoded(raw), True, 1.0, []), Admitted)
    assert admit_plain(admitter, decoded(raw), True, 1.0, []) is None, "known: left to the checks"

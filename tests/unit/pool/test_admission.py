"""Tests every check of admission, with the error and the text of json-rpc.md 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chain.gas_price import FeeFloor
from ophion.native.executor import State
from ophion.native.transactions import Transaction, decode_transactions
from ophion.pool.admission import AdmissionContext, AdmissionRequest, PoolHead, judge, undecodable
from ophion.primitives import rlp
from ophion.primitives.types import Address
from ophion.testing.signing import (
    DEV_KEYS,
    blob_transaction,
    fee_transaction,
    legacy_transaction,
    set_code_transaction,
)

KEY = DEV_KEYS[0]
RICH = 10**24
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def decoded(raw: bytes) -> Transaction:
    [transaction] = decode_transactions([raw])
    assert isinstance(transaction, Transaction), transaction
    return transaction


@pytest.fixture
def head(world: Callable[..., State]) -> PoolHead:
    state = world({KEY.address: (0, RICH)})
    return PoolHead("osaka", 2018, 30_000_000, 0, 49_152, state, blob_limit=6)


def verdict(
    raw: bytes,
    head: PoolHead,
    floor: FeeFloor | None = None,
    refusal_of: Callable[[Address], str | None] = lambda sender: None,
    fee_cap: int = 0,
    is_local: bool = True,
    needs_chain_id: bool = False,
) -> tuple[str, str] | None:
    context = AdmissionContext.at(head, floor or FeeFloor(), fee_cap, needs_chain_id)

    def account(sender: Address) -> tuple[int, int, str | None]:
        assert head.state is not None
        nonce, balance = (head.state.account(sender) or (0, 0))[:2]
        return nonce, balance, refusal_of(sender)

    transaction = decoded(raw)
    request = AdmissionRequest.of(transaction, head.fork, is_local)
    refusal = judge(request, context, account)
    usual = None if context.bounds is None else transaction.plain_admission_values(context.bounds)
    if usual is not None:
        # a transaction of the fast path can only fail the rules about its sender's account
        assert refusal is None or refusal.reason in ("upfront-cost", "nonce-too-low", "not-authorized")
        hash, sender, nonce, gas_limit, max_fee, max_tip, size, cost = usual
        values = (hash, sender, request.type, request.chain_id, nonce, gas_limit, max_fee, max_tip, cost, size)
        assert values == transaction.admission_values(head.fork)[:10]
    return None if refusal is None else (refusal.reason, refusal.message)


def test_a_good_transaction_passes(head: PoolHead) -> None:
    assert verdict(legacy_transaction(KEY, 0), head) is None
    assert verdict(fee_transaction(KEY, 0), head) is None
    assert verdict(legacy_transaction(KEY, 7), head) is None, "a future nonce waits"
    assert verdict(legacy_transaction(KEY, 0, chain_id=None), head) is None, "before EIP-155"


@pytest.mark.parametrize(
    ("changes", "reason", "message"),
    [
        ({"gas_price": 999}, "gas-price-too-low", "Gas price below configured minimum gas price"),
        ({"chain_id": 1}, "wrong-chain-id", "Wrong chainId"),
        ({"gas": 20_999}, "intrinsic-gas", "Intrinsic gas exceeds gas limit"),
        ({"gas": 30_000_001}, "gas-limit", "Transaction gas limit exceeds block gas limit"),
        ({"gas": 2**24 + 1}, "gas-limit-cap", "Transaction gas limit exceeds 16777216 (EIP-7825)"),
        ({"value": RICH}, "upfront-cost", "Upfront cost exceeds account balance"),
        (
            {"to": None, "data": bytes(49_153), "gas": 10_000_000},
            "init-code",
            "Creation code is longer than 49152 bytes",
        ),
    ],
)
def test_each_rule_has_its_own_error(head: PoolHead, changes: dict[str, Any], reason: str, message: str) -> None:
    assert verdict(legacy_transaction(KEY, 0, **changes), head) == (reason, message)


def test_a_nonce_below_the_accounts_is_too_low(world: Callable[..., State], head: PoolHead) -> None:
    used = replace(head, state=world({KEY.address: (3, RICH)}))
    assert verdict(legacy_transaction(KEY, 2), used) == ("nonce-too-low", "Nonce too low")
    assert verdict(legacy_transaction(KEY, 3), used) is None


def test_a_chain_id_of_zero_is_no_signature_at_all(head: PoolHead) -> None:
    raw = legacy_transaction(KEY, 0, chain_id=0, gas_price=0)
    assert verdict(raw, head) == ("malformed", "v of a signature is 27, 28 or at least 37")


def test_the_last_nonce_is_never_used(head: PoolHead) -> None:
    assert verdict(legacy_transaction(KEY, 2**64 - 1), head) == ("nonce-overflow", "Nonce must be less than 2^64-1")
    assert verdict(legacy_transaction(KEY, 2**64 - 2), head) is None


def test_a_strict_node_takes_no_unprotected_transactions_from_clients(head: PoolHead) -> None:
    raw = legacy_transaction(KEY, 0, chain_id=None)
    assert verdict(raw, head, needs_chain_id=True) == ("chain-id-required", "ChainId is required")
    assert verdict(raw, head, needs_chain_id=True, is_local=False) is None
    assert verdict(raw, replace(head, chain_id=None), needs_chain_id=True) is None
    assert verdict(legacy_transaction(KEY, 0), head, needs_chain_id=True) is None


@pytest.mark.parametrize(
    ("r", "s", "reason"),
    [
        (0, 0, "malformed"),
        (0, 1, "malformed"),
        (1, 0, "malformed"),
        (ORDER, 1, "malformed"),
        (5, 1, "invalid-signature"),
    ],
    ids=["unsigned", "no r", "no s", "r too large", "r of no point"],
)
def test_a_signature_out_of_range_is_malformed_and_one_without_signer_is_invalid(r: int, s: int, reason: str) -> None:
    fields = [rlp.scalar(number) for number in (0, 1, 21_000)] + [bytes(20), b"", b""]
    [text] = decode_transactions([rlp.encode([*fields, rlp.scalar(27), rlp.scalar(r), rlp.scalar(s)])])
    assert isinstance(text, str)
    assert undecodable(text).reason == reason


GOOD_HASH = b"\x01" + bytes(31)


@pytest.mark.parametrize(
    ("hashes", "reason"),
    [
        ([], "blob-count"),
        ([GOOD_HASH] * 7, "blob-count"),
        ([GOOD_HASH, b"\x02" + bytes(31)], "blob-version"),
        ([GOOD_HASH] * 6, None),
    ],
    ids=["none", "too many", "unknown version", "six"],
)
def test_a_blob_transaction_has_some_blobs_and_not_too_many(
    head: PoolHead, hashes: list[bytes], reason: str | None
) -> None:
    refusal = verdict(blob_transaction(KEY, 0, hashes), head)
    assert (None if refusal is None else refusal[0]) == reason


def test_a_set_code_transaction_has_authorizations(head: PoolHead) -> None:
    assert verdict(set_code_transaction(KEY, 0, []), head) == (
        "no-authorizations",
        "Set-code transaction without authorizations",
    )
    assert verdict(set_code_transaction(KEY, 0, [(0, bytes(20), 0, 0, 1, 1)]), head) is None


def test_a_type_needs_its_fork(head: PoolHead) -> None:
    old = replace(head, fork="berlin")
    refusal = verdict(fee_transaction(KEY, 0), old)
    assert refusal is not None
    assert refusal[0] == "type-not-supported"
    assert verdict(legacy_transaction(KEY, 0), old) is None


def test_a_chain_without_an_id_takes_unprotected_transactions_only(head: PoolHead) -> None:
    nameless = replace(head, chain_id=None)
    assert verdict(legacy_transaction(KEY, 0), nameless) == ("chain-id-not-supported", "ChainId not supported")
    assert verdict(legacy_transaction(KEY, 0, chain_id=None), nameless) is None


def test_the_price_that_would_be_paid_must_reach_the_floor(head: PoolHead) -> None:
    generous = fee_transaction(KEY, 0, max_fee=10**9, tip=0)
    assert verdict(generous, head) == ("gas-price-too-low", "Gas price below configured minimum gas price")
    assert verdict(generous, replace(head, base_fee=1000)) is None
    assert verdict(generous, head, FeeFloor(0, 0)) is None
    assert verdict(generous, replace(head, base_fee=1000), FeeFloor(0, 1)) is not None
    assert verdict(legacy_transaction(KEY, 0, gas_price=0), head, FeeFloor(0, 0)) is None


def test_a_tip_above_the_fee_is_refused(head: PoolHead) -> None:
    raw = fee_transaction(KEY, 0, max_fee=10**9, tip=10**9 + 1)
    assert verdict(raw, head) == ("tip-above-fee", "Max priority fee per gas exceeds max fee per gas")


def test_without_the_state_of_the_head_nothing_can_be_judged(head: PoolHead) -> None:
    assert verdict(legacy_transaction(KEY, 0), replace(head, state=None)) == (
        "syncing",
        "Initial sync is still in progress",
    )


def test_an_account_that_is_not_listed_may_not_send(head: PoolHead) -> None:
    refusal = verdict(
        legacy_transaction(KEY, 0), head, refusal_of=lambda sender: "no" if sender == KEY.address else None
    )
    assert refusal == ("not-authorized", "Sender account not authorized to send transactions")


def test_the_account_list_is_asked_last(head: PoolHead) -> None:
    refusal = verdict(legacy_transaction(KEY, 0, value=RICH), head, refusal_of=lambda sender: "no")
    assert refusal is not None
    assert refusal[0] == "upfront-cost"


def test_the_fee_cap_holds_for_local_transactions_only(head: PoolHead) -> None:
    raw = legacy_transaction(KEY, 0)
    assert verdict(raw, head, fee_cap=1) == ("fee-cap", "Transaction fee cap exceeded")
    assert verdict(raw, head, fee_cap=1, is_local=False) is None


def test_the_first_broken_rule_answers(head: PoolHead) -> None:
    raw = legacy_transaction(KEY, 0, gas_price=1, chain_id=5, gas=1)
    refusal = verdict(raw, head)
    assert refusal is not None
    assert refusal[0] == "gas-price-too-low"


@pytest.mark.parametrize("fork", ["spurious", "london", "shanghai", "osaka"])
def test_common_transactions_are_plain(head: PoolHead, fork: str) -> None:
    context = AdmissionContext.at(replace(head, fork=fork), FeeFloor(), 10**18)
    assert context.bounds is not None
    raws = [legacy_transaction(KEY, 0, chain_id=2018), legacy_transaction(KEY, 5, to=None, gas=60_000, chain_id=2018)]
    if fork != "spurious":
        raws.append(fee_transaction(KEY, 1, chain_id=2018))
    for raw in raws:
        assert decoded(raw).plain_admission_values(context.bounds) is not None


def test_a_closer_look_is_taken_where_numbers_are_beyond_those_of_the_extension(head: PoolHead) -> None:
    for odd in (
        replace(head, state=None),
        replace(head, chain_id=None),
        replace(head, chain_id=2**64),
        replace(head, gas_limit=2**64),
        replace(head, base_fee=2**127),
    ):
        assert AdmissionContext.at(odd, FeeFloor(), 0).bounds is None
    assert AdmissionContext.at(head, FeeFloor(2**200), 0).bounds is None
    assert AdmissionContext.at(head, FeeFloor(), 2**255).bounds is not None


def test_the_bounds_are_those_of_the_floor_as_it_is(head: PoolHead) -> None:
    floor = FeeFloor(1000)
    context = AdmissionContext.at(head, floor, 0)
    transaction = decoded(legacy_transaction(KEY, 0, gas_price=1500, chain_id=2018))
    assert context.bounds is not None
    assert transaction.plain_admission_values(context.bounds) is not None
    floor.min_gas_price = 2000
    moved = context.with_current_prices()
    assert moved.bounds is not None
    assert transaction.plain_admission_values(moved.bounds) is None


def test_a_used_nonce_is_reported_before_a_low_price(world: Callable[..., State], head: PoolHead) -> None:
    used = replace(head, state=world({KEY.address: (3, RICH)}))
    assert verdict(legacy_transaction(KEY, 2, gas_price=0), used) == ("nonce-too-low", "Nonce too low")
    low = verdict(legacy_transaction(KEY, 3, gas_price=0), used)
    assert low is not None
    assert low[0] == "gas-price-too-low"

"""Tests execution: included and excluded transactions, and calls without lasting effects."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from ophion.native.exceptions import InvalidBody, NativeError, TimedOut
from ophion.native.executor import (
    AccountOverride,
    BlockEnv,
    CallCostCache,
    CallRequest,
    ChainRules,
    LatestBlock,
    OpenBlock,
    call,
    call_each,
    create_access_list,
    estimate_gas,
    execute,
    genesis_state,
)
from ophion.native.store import open_store
from ophion.native.transactions import Body, decode_transactions
from ophion.testing.node_process import environment
from tests.conftest import ROOT
from tests.unit.native.worlds import ADDRESSES, CHAIN_ID, KEYS, World, decoded, signed

COUNTER = b"\xcc" * 20
ENDLESS = bytes.fromhex("5b5f56")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "db")


def test_a_block_is_filled_in_order_and_says_what_it_left_out(world: World) -> None:
    raws = [
        signed(KEYS[0], 0, COUNTER),
        signed(KEYS[0], 0, COUNTER, value=1),
        signed(KEYS[1], 5, COUNTER),
        signed(KEYS[2], 0, b"\x77" * 20, value=10**30),
        signed(KEYS[3], 0, COUNTER),
    ]
    block = OpenBlock(world.genesis.execution.state, world.env(1, world.genesis.hash), False)
    taken = block.take(decoded(raws), 5.0)
    assert taken.included == [0, 4]
    assert [position for position, _ in taken.skipped] == [1, 3], "a nonce gap may close, so it is not in the list"
    assert (taken.early, taken.unfit, taken.unfinished, taken.seen, taken.is_full) == ([2], [], None, 5, False)


@pytest.mark.parametrize("fork", ["spurious", "shanghai", "prague"])
@pytest.mark.parametrize("step", [1, 7, 300])
def test_a_block_that_grows_is_the_block_that_is_run(tmp_path: Path, fork: str, step: int) -> None:
    """An incrementally built block equals the executed block, with batches of any size, in any thread, and hashed at
    any time.
    """
    world = World(tmp_path / "db", fork, gas_limit=10**9)
    new = iter(range(1, 1000))
    raws = [
        signed(key, nonce, COUNTER if (nonce + at) % 3 else next(new).to_bytes(20, "big"), value=nonce)
        for nonce in range(60)
        for at, key in enumerate(KEYS)
    ]
    raws[4] = signed(KEYS[4], 0, b"\xdd" * 20)
    env = world.env(1, world.genesis.hash)
    block = OpenBlock(world.genesis.execution.state, env, True)
    candidates = decoded(raws)
    with ThreadPoolExecutor(1) as other:
        for start in range(0, len(raws), step):
            part = candidates[start : start + step]
            taken = (other.submit(block.take, part, 9.0).result if start % 2 else partial(block.take, part, 9.0))()
            assert taken.included == list(range(len(part)))
            if start % 3:
                block.settle()
    body, execution = block.seal(None, [(ADDRESSES[0], 5)])
    whole = Body.of(raws, [], None)
    expected = execute(world.genesis.execution.state, env, whole, [(ADDRESSES[0], 5)], True)
    assert body.encode_block(b"\xc0") == whole.encode_block(b"\xc0")
    assert body.transactions_root == whole.transactions_root
    for name in ("state_root", "receipts_root", "logs_bloom", "gas_used", "requests"):
        assert getattr(execution, name) == getattr(expected, name), name
    with pytest.raises(NativeError, match="sealed"):
        block.take([], 1.0)


def test_a_full_block_takes_nothing_more(tmp_path: Path) -> None:
    world = World(tmp_path / "db", gas_limit=60_000)
    block = OpenBlock(world.genesis.execution.state, world.env(1, world.genesis.hash), False)
    raws = [
        signed(KEYS[0], 0, ADDRESSES[2], gas=21_000),
        signed(KEYS[1], 0, COUNTER, gas=50_000),
        signed(KEYS[2], 0, ADDRESSES[0], gas=21_000),
        signed(KEYS[3], 0, ADDRESSES[0], gas=21_000),
    ]
    taken = block.take(decoded(raws), 5.0)
    assert (taken.included, taken.unfit, taken.seen, taken.is_full) == ([0, 2], [1], 3, True)


def test_the_transaction_that_breaks_a_rule_is_named(world: World) -> None:
    body = Body.of([signed(KEYS[0], 0, COUNTER), signed(KEYS[0], 7, COUNTER)], [], None)
    with pytest.raises(InvalidBody, match="transaction 1: its nonce is too high"):
        execute(world.genesis.execution.state, world.env(1, world.genesis.hash), body, [], False)


def test_rewards_and_fees_reach_their_accounts(world: World) -> None:
    body = Body.of([signed(KEYS[0], 0, b"\x77" * 20, value=1)], [], None)
    env = world.env(1, world.genesis.hash)
    result = execute(world.genesis.execution.state, env, body, [(b"\x55" * 20, 10**18)], False)
    before = world.genesis.execution.state.balance(ADDRESSES[4])
    assert result.state.balance(b"\x55" * 20) == 10**18
    assert result.state.balance(ADDRESSES[4]) == before + 21_000 * 10
    assert result.receipt_statuses() == [(True, 21_000, b"")]


def test_malformed_transactions_say_what_is_wrong() -> None:
    good = signed(KEYS[0], 0, COUNTER)
    answers = decode_transactions([good, b"", b"\xc0", good + b"\x00", b"\x7f\xc0"])
    assert not isinstance(answers[0], str)
    assert answers[0].chain_id == CHAIN_ID
    assert all(isinstance(answer, str) and answer for answer in answers[1:])


def test_a_call_returns_reverts_halts_or_is_invalid(world: World) -> None:
    state, env = world.store.latest(), world.env(1, world.genesis.hash)

    def run(code: str, **more: int) -> tuple[str, bytes, str]:
        override = AccountOverride(address=b"\x99" * 20, code=bytes.fromhex(code))
        request = CallRequest(sender=ADDRESSES[0], to=b"\x99" * 20, gas=more.pop("gas", 100_000), **more)  # type: ignore[arg-type]
        outcome = call(state, env, request, [override], 5.0)
        return outcome.kind, outcome.output, outcome.reason

    assert run("60075f5260205ff3") == ("returned", (7).to_bytes(32, "big"), "")
    assert run("60075f5260205ffd") == ("reverted", (7).to_bytes(32, "big"), "")
    assert run("fe") == ("halted", b"", "invalid opcode")
    assert run("5b5f56", gas=1_000_000)[2] == "out of gas"
    assert run("00", gas=100)[2].startswith("intrinsic-gas:")
    assert run("00", value=10**30)[2].startswith("balance:")
    assert world.store.latest().account(b"\x99" * 20) is None


_FIRST_PROOF = """
import hashlib, sys
from pathlib import Path
from ophion.native.executor import CallRequest, call
from ophion.runtime.memory import resident_bytes
from tests.unit.native.worlds import ADDRESSES, World

world = World(Path(sys.argv[1]), "cancun")
nothing = bytes([0xC0]) + bytes(47)  # the blob of zeros, and the proof of any of its values
proof = b"\\1" + hashlib.sha256(nothing).digest()[1:] + bytes(64) + nothing + nothing
request = CallRequest(sender=ADDRESSES[0], to=(10).to_bytes(20, "big"), gas=100_000, input=proof)
before = resident_bytes()
outcome = call(world.genesis.execution.state, world.env(1, world.genesis.hash), request, [], 600.0)
print(len(outcome.output), resident_bytes() - before)
"""


def test_the_first_proof_of_a_blob_takes_nothing_that_stays(tmp_path: Path) -> None:
    """Verifying a blob proof does not load the tables for making proofs. The tables take 100 MB and seconds of
    processor time.
    """
    command = [sys.executable, "-c", _FIRST_PROOF, str(tmp_path / "db")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment())
    length, growth_bytes = map(int, done.stdout.split())
    assert length == 64
    assert growth_bytes < 20_000_000


def test_a_call_that_runs_too_long_is_stopped(world: World) -> None:
    override = AccountOverride(address=b"\x99" * 20, code=ENDLESS)
    request = CallRequest(sender=ADDRESSES[0], to=b"\x99" * 20, gas=2**60)
    outcome = call(world.store.latest(), world.env(1, world.genesis.hash), request, [override], 0.05)
    assert outcome.kind == "timeout"


def test_calls_with_many_inputs_are_each_as_if_alone(world: World) -> None:
    """Each of many calls gives the same result as alone. One call changes a slot after reading it, and others fail."""
    state, env = world.store.latest(), world.env(1, world.genesis.hash)
    stores = bytes.fromhex("5f5460015f555f5260205ff3")
    inputs = [stores, stores, bytes.fromhex("5f5ffd"), ENDLESS, b"\xfe", stores, stores]
    request = CallRequest(sender=ADDRESSES[0], to=None, gas=10**9)
    outcomes = call_each(state, env, request, inputs, 0.05)
    kinds = ["returned", "returned", "reverted", "timeout", "halted", "returned", "returned"]
    assert [outcome.kind for outcome in outcomes] == kinds
    assert all(outcomes[position].output == bytes(32) for position in (0, 1, 5, 6))
    for input, outcome in zip(inputs, outcomes, strict=True):
        if outcome.kind != "timeout":
            alone = call(state, env, CallRequest(sender=ADDRESSES[0], to=None, gas=10**9, input=input), [], 5.0)
            assert (alone.kind, alone.output, alone.gas_used) == (outcome.kind, outcome.output, outcome.gas_used)
    assert call_each(state, env, request, [], 1.0) == []


def test_overrides_replace_or_change_storage(world: World) -> None:
    state, env = world.store.latest(), world.env(1, world.genesis.hash)
    read = bytes.fromhex("6007545f5260205ff3")
    request = CallRequest(sender=ADDRESSES[0], to=COUNTER, gas=100_000)

    def seen(override: AccountOverride) -> int:
        return int.from_bytes(call(state, env, request, [override], 5.0).output, "big")

    one = [((1).to_bytes(32, "big"), (1).to_bytes(32, "big"))]
    assert seen(AccountOverride(address=COUNTER, code=read)) == 70
    assert seen(AccountOverride(address=COUNTER, code=read, state_diff=one)) == 70
    assert seen(AccountOverride(address=COUNTER, code=read, state=one)) == 0


def test_the_estimate_suffices_and_is_close(world: World) -> None:
    state, env = world.store.latest(), world.env(1, world.genesis.hash)
    request = CallRequest(sender=ADDRESSES[0], to=COUNTER, gas=0)
    gas, outcome = estimate_gas(state, env, request, [], 30_000_000, 5.0)
    assert outcome.kind == "returned"
    enough = CallRequest(sender=ADDRESSES[0], to=COUNTER, gas=gas)
    assert call(state, env, enough, [], 5.0).kind == "returned"
    assert gas <= outcome.gas_used * 1.02
    plain = CallRequest(sender=ADDRESSES[0], to=b"\x77" * 20, gas=0, value=1)
    assert estimate_gas(state, env, plain, [], 30_000_000, 5.0)[0] == 21_000


def test_an_access_list_names_what_a_call_touches(world: World) -> None:
    state, env = world.store.latest(), world.env(1, world.genesis.hash)
    rows, outcome = create_access_list(state, env, CallRequest(sender=ADDRESSES[0], to=COUNTER, gas=200_000), [], 5.0)
    assert outcome.kind == "returned"
    assert rows == [(COUNTER, [(0).to_bytes(32, "big")])]


def test_an_access_list_is_given_up_in_the_middle_of_a_run(world: World) -> None:
    state, env = world.store.latest(), world.env(1, world.genesis.hash)
    loop = AccountOverride(address=COUNTER, code=bytes.fromhex("5b600056"))
    request = CallRequest(sender=ADDRESSES[0], to=COUNTER, gas=10**12)
    # 10^12 gas would take minutes, so only a clock check during the run gives a timeout
    assert create_access_list(state, env, request, [loop], 0.0)[1].kind == "timeout"


def test_wrong_lengths_are_refused_before_anything_runs(world: World) -> None:
    with pytest.raises(NativeError, match="20 bytes expected"):
        world.store.latest().balance(b"\x01")
    with pytest.raises(NativeError, match="32 bytes expected"):
        world.store.state(b"\x01")


def test_a_beacon_root_contract_that_reverts_does_not_spoil_the_block(tmp_path: Path) -> None:
    beacon_roots = bytes.fromhex("000f3df6d732807ef1319fb7b8bb8522d0beac02")
    store = open_store(tmp_path / "db", durable=False)
    before = genesis_state(store, [(beacon_roots, 1, 0, bytes.fromhex("5f5ffd"), [])])
    env = BlockEnv(
        rules=ChainRules(chain_id=CHAIN_ID),
        fork="cancun",
        number=1,
        timestamp=1,
        beneficiary=ADDRESSES[4],
        gas_limit=30_000_000,
        difficulty=0,
        mix_hash=bytes(32),
        base_fee=0,
        excess_blob_gas=0,
        parent_beacon_root=b"\x01" * 32,
        parent_hash=bytes(32),
    )
    after = execute(before.state, env, Body.of([], [], []), [], False)
    assert after.state_root == before.state_root


def test_a_plain_call_object_takes_the_fast_path(world: World) -> None:
    state, env = world.store.latest(), world.env(1, world.genesis.hash)

    costs, latest = CallCostCache(), LatestBlock(0, state)

    def quick(**members: object) -> bytes | None:
        return latest.call(members)

    counter, sender = "0x" + COUNTER.hex(), "0x" + ADDRESSES[0].hex()
    assert not latest.has_call_settings
    assert quick(to=counter) is None, "there are no call settings yet"
    latest.set_call_settings(env, 30_000_000, 50_000_000, 1.0, costs)
    assert latest.has_call_settings
    assert quick(to=counter) == b""
    assert quick(to=counter, data="0x1234", gas="0x30d40", **{"from": sender}) == b""
    for unusual in (
        {},
        {"data": "0x"},
        {"to": "0x12"},
        {"to": counter, "data": "0x1"},
        {"to": counter, "data": "zz"},
        {"to": counter, "data": "0x", "input": "0x"},
        {"to": counter, "gas": "0x0"},
        {"to": counter, "gas": "0x+1"},
        {"to": counter, "gas": "0x64"},
        {"to": counter, "value": "0x1"},
        {"to": counter, "from": None},
    ):
        assert quick(**unusual) is None, unusual
    costs.note(COUNTER, b"\x12\x34", True)
    assert quick(to=counter, data="0x1234") is None
    assert quick(to=counter, data="0x1235") == b""
    latest.set(1, state)
    assert not latest.has_call_settings, "another block has another environment"
    with pytest.raises(ValueError, match="the latest block has no fortune"):
        latest.reading("fortune")


def test_sums_beyond_all_money_are_invalid_and_no_panic(world: World) -> None:
    state, env = world.store.latest(), world.env(1, world.genesis.hash)
    most = CallRequest(
        sender=ADDRESSES[0], to=COUNTER, gas=2**63, value=2**256 - 1, gas_price=2**128 - 1, check_balance=False
    )
    assert call(state, env, most, [], 1.0).reason.startswith("balance:")
    assert estimate_gas(state, env, most, [], 30_000_000, 1.0)[1].reason.startswith("balance:")
    assert create_access_list(state, env, most, [], 1.0)[1].reason.startswith("balance:")


@pytest.mark.parametrize(
    "members", [{"gas_price": 2**128 - 1}, {"max_fee_per_blob_gas": 2**128 - 1}], ids=["gas", "blobs"]
)
def test_fees_beyond_all_money_are_refused_wherever_a_call_is_run(world: World, members: dict[str, int]) -> None:
    """Fees above any possible balance are refused even if the balance is not checked, because the EVM multiplies fees
    in 128 bits.
    """
    state, env = world.store.latest(), world.env(1, world.genesis.hash)
    request = CallRequest(sender=ADDRESSES[0], to=ADDRESSES[1], gas=2**40, blob_hashes=[b"\x01" * 32], **members)
    assert call(state, env, request, (), 1.0).reason.startswith("balance:")
    assert estimate_gas(state, env, request, (), 2**40, 1.0)[1].reason.startswith("balance:")
    assert create_access_list(state, env, request, (), 1.0)[1].reason.startswith("balance:")


def test_undecodable_transactions_say_what_is_wrong() -> None:
    good = signed(KEYS[0], 0, ADDRESSES[1])
    assert decode_transactions([b"", good[:-1], b"\xc0"]) == [
        "there are no bytes",
        "input too short",
        "input too short",
    ]


@pytest.mark.parametrize("is_first", [True, False], ids=["alone", "behind another"])
def test_a_transaction_that_never_ends_does_not_hold_up_the_building_of_blocks(tmp_path: Path, is_first: bool) -> None:
    """The block builder aborts a transaction that could run for weeks at the gas limit of development networks."""
    world = World(tmp_path / "db", gas_limit=2**53)
    endless = signed(KEYS[0], 0, None, data=ENDLESS, gas=2**52)
    good = signed(KEYS[1], 0, ADDRESSES[2], value=1)
    raws = [endless] if is_first else [good, endless]
    env = world.env(1, world.genesis.hash)
    block = OpenBlock(world.store.latest(), env, False)
    taken = block.take(decoded(raws), 0.05)
    assert (taken.included, taken.skipped) == ([] if is_first else [0], [])
    assert taken.unfinished == len(raws) - 1
    body, execution = block.seal(None, ())
    same = OpenBlock(world.store.latest(), env, False)
    same.take(decoded(raws[:-1]), 9.0)
    assert body.transaction_count == len(raws) - 1
    assert execution.state_root == same.seal(None, ())[1].state_root


HASHES = bytes.fromhex("620fffff5f2050" * 200)
"""Code that hashes nearly a megabyte 200 times without a jump."""
SLOTS = bytes.fromhex("".join(f"61{slot:04x}5450" for slot in range(4000)))
POWERS = bytes.fromhex("6003" + "5f19810a50" * 4000)
"""Code that computes a power of three with the highest exponent, many times."""
MODEXP = b"".join(size.to_bytes(32, "big") for size in (400, 400, 400)) + bytes([255]) * 1200


@pytest.mark.parametrize(
    ("to", "code", "data"),
    [
        (COUNTER, HASHES, b""),
        (COUNTER, SLOTS, b""),
        (COUNTER, POWERS, b""),
        ((5).to_bytes(20, "big"), b"", MODEXP),
        (COUNTER, bytes.fromhex("365f5f375f5f365f6005620f4240fa00"), MODEXP),
        ((2).to_bytes(20, "big"), b"", bytes(1_000_000)),
    ],
    ids=["large hashes", "slots", "powers", "a precompiled contract", "one that is called", "one with much to hash"],
)
def test_nothing_holds_a_call_much_longer_than_it_may_take(world: World, to: bytes, code: bytes, data: bytes) -> None:
    state, env = world.store.latest(), world.env(1, world.genesis.hash)
    request = CallRequest(sender=ADDRESSES[0], to=to, gas=50_000_000, input=data)
    overrides = [AccountOverride(address=to, code=code)] if code else []
    assert call(state, env, request, overrides, 0.0005).kind == "timeout"
    assert call(state, env, request, overrides, 60.0).kind == "returned"


HASHED = bytes.fromhex("60205f60205f60025afa5f5500")
"""Code that calls the SHA-256 precompile for a word and stores whether the call succeeded."""


def test_what_a_call_was_given_does_not_bound_a_block_that_is_run_later(world: World) -> None:
    """The deadline of a call does not affect a block that the same thread executes later."""
    env = world.env(1, world.genesis.hash)
    body = Body.of([signed(KEYS[0], 0, None, data=HASHED)], [], None)
    state = world.genesis.execution.state
    first = execute(state, env, body, [], True)
    request = CallRequest(sender=ADDRESSES[0], to=b"\x99" * 20, gas=2**60)
    endless = AccountOverride(address=b"\x99" * 20, code=ENDLESS)
    assert call(state, env, request, [endless], 0.001).kind == "timeout"
    assert create_access_list(state, env, request, [endless], 0.001)[1].kind == "timeout"
    again = execute(state, env, body, [], True)
    assert (again.state_root, again.gas_used) == (first.state_root, first.gas_used)


def test_a_block_may_be_given_a_time(world: World) -> None:
    env = world.env(1, world.genesis.hash)
    body = Body.of([signed(KEYS[0], 0, None, data=ENDLESS, gas=20_000_000)], [], None)
    with pytest.raises(TimedOut, match="transaction 0: it took too long"):
        execute(world.genesis.execution.state, env, body, [], True, 0.0)
    assert execute(world.genesis.execution.state, env, body, [], True, 60.0).gas_used == 20_000_000


def test_an_access_list_that_never_settles_is_given_after_some_rounds(world: World) -> None:
    """The called code reads the slot whose number is the remaining gas, so each round touches another slot."""
    restless = AccountOverride(address=COUNTER, code=bytes.fromhex("5a5400"))
    request = CallRequest(sender=ADDRESSES[0], to=COUNTER, gas=1_000_000)
    state, env = world.store.latest(), world.env(1, world.genesis.hash)
    found, outcome = create_access_list(state, env, request, [restless], 60.0)
    assert outcome.kind == "returned"
    assert len(found) == 1

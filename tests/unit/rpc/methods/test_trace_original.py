"""Tests trace_* in the form that Besu 21.10 derives from its list of instructions (docs/decisions/0030).

There are two chains: ethash with a fixed difficulty at Istanbul, and Cancun with a terminal total difficulty of 0.
Expected values are computed by hand from the gas tables of the two forks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.native.store import open_store
from ophion.node.config import NodeConfig
from ophion.producer.block_script import BlockScript
from ophion.runtime.clock import SystemClock
from ophion.testing.node_core import DEV_CONFIG
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface, open_interface

ISTANBUL = {"chainId": 2018, "istanbulBlock": 0, "ethash": {"fixeddifficulty": 100}}
CANCUN = {
    "chainId": 2018,
    "londonBlock": 0,
    "terminalTotalDifficulty": 0,
    "shanghaiTime": 0,
    "cancunTime": 0,
    "ethash": {},
}
SENDER = "0x" + DEV_KEYS[0].address.hex()
GAS = 100_000
INTRINSIC = 21_000
PUSH = 3
POP = 2
CALL = 700
VALUE_TRANSFER = 9_000
STIPEND = 2_300
CREATE = 32_000
ZERO_WORD = "0x" + "00" * 32


def at(number: int) -> str:
    """Return the address of a genesis contract."""
    return f"0x{number:040x}"


def push(number: int) -> str:
    data = number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")
    return f"{0x5F + len(data):02x}{data.hex()}"


def call(to: int, value: int = 0, size: int = 0, returned: int = 0, gas: int = 0xFFFF, kind: str = "f1") -> str:
    """Return bytecode of a call. Input and output start at memory offset 0; the success flag stays on the stack."""
    sent = push(value) if kind in ("f1", "f2") else ""
    return push(returned) + push(0) + push(size) + push(0) + sent + push(to) + push(gas) + kind


def create(init: str, value: int = 0, kind: str = "f0") -> str:
    """Return bytecode of a creation with at most 32 bytes of init code; the address stays on the stack."""
    size = len(init) // 2
    salt = push(0) if kind == "f5" else ""
    return f"{0x5F + size:02x}{init}" + push(0) + "52" + salt + push(size) + push(32 - size) + push(value) + kind


REVERT, RETURN_WORD, RETURN_NOTHING = "60006000fd", "60206000f3", "60006000f3"
LOADING_REVERT = "60003550" + REVERT
ONE_BYTE = "60016000f3"
"""Init code that deploys one zero byte."""

REVERTS, RETURNS, LOADS, INVALID, HEIR, STOPS, CLEARS, SPINS = 0x101, 0x102, 0x103, 0x104, 0x105, 0x106, 0x107, 0x108
ASKS_REVERTS, ASKS_LOADS, ASKS_BOTH, ASKS_IDENTITY, PAYS_IDENTITY = 0x201, 0x202, 0x203, 0x204, 0x205
DELEGATES_HEIR, ASKS_INVALID, OVERDRAWS, STARVES, CREATES, OVERDRAWN_CREATE, STARVED_CREATE, NOBODY = (
    0x206,
    0x207,
    0x208,
    0x209,
    0x20A,
    0x20B,
    0x20C,
    0x999,
)
ASKS_NOBODY, TWO_CREATE2, LONG_RETURN, ASKS_LONG, TWICE_OVERDRAWN = 0x20D, 0x20E, 0x20F, 0x210, 0x211
IDENTITY = 4

CONTRACTS = {
    REVERTS: REVERT,
    RETURNS: RETURN_NOTHING,
    LOADS: LOADING_REVERT,
    INVALID: "fe",
    HEIR: "33ff",
    STOPS: "00",
    CLEARS: push(0) + push(0) + "5500",
    SPINS: "5b600056",
    ASKS_REVERTS: call(REVERTS, value=1) + "5000",
    ASKS_LOADS: call(LOADS, value=1) + "5000",
    ASKS_BOTH: call(REVERTS) + "50" + call(RETURNS) + "5000",
    ASKS_IDENTITY: call(IDENTITY, size=32, returned=32) + "5000",
    PAYS_IDENTITY: call(IDENTITY, value=1, size=32) + "5000",
    DELEGATES_HEIR: call(HEIR, kind="f4") + "5000",
    ASKS_INVALID: call(INVALID) + "5000",
    OVERDRAWS: call(RETURNS, value=10**6) + "5000",
    STARVES: call(SPINS, gas=20) + "5000",
    CREATES: create(ONE_BYTE) + "5000",
    OVERDRAWN_CREATE: create(ONE_BYTE, value=10**6) + "50" + RETURN_NOTHING,
    # this contract loops until less than 30,000 gas is left
    STARVED_CREATE: "5b5a61753010600057" + push(0) * 3 + "f000",
    ASKS_NOBODY: call(NOBODY) + "50" + RETURN_WORD,
    TWO_CREATE2: create(ONE_BYTE, kind="f5") + "50" + create(ONE_BYTE, kind="f5") + "5000",
    LONG_RETURN: "61ffff6000f3",
    ASKS_LONG: call(LONG_RETURN) + "5000",
    TWICE_OVERDRAWN: call(INVALID, gas=50) + "50" + (create(ONE_BYTE, value=10**6) + "50") * 2 + "00",
}


def genesis(config: dict[str, Any]) -> Genesis:
    alloc: dict[str, Any] = {at(number): {"code": "0x" + code, "balance": "0x64"} for number, code in CONTRACTS.items()}
    alloc[at(CLEARS)]["storage"] = {ZERO_WORD: "0x01"}
    alloc[SENDER] = {"balance": hex(10**18)}
    text = {"config": config, "difficulty": "0x64", "gasLimit": "0x1312d00", "baseFeePerGas": "0x7", "alloc": alloc}
    return parse_genesis(json.dumps(text).encode())


@pytest.fixture(scope="module")
def istanbul(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interface]:
    """Open the Istanbul chain, whose block 1 calls the contracts REVERTS, CREATES and HEIR."""
    path = tmp_path_factory.mktemp("istanbul")
    first = genesis(ISTANBUL)
    store = open_store(path, durable=False)
    try:
        clock = SystemClock()
        chain = Chain.open(store, first, engine_for(first.spec, verifies_work=False))
        sent = [
            {"gasLimit": hex(GAS), "gasPrice": "0x1", "to": at(to), "secretKey": DEV_KEYS[0].secret().hex()}
            for to in (REVERTS, CREATES, HEIR)
        ]
        block = {"coinbase": at(0xC0), "transactions": sent}
        BlockScript(ImportCore(chain, clock), clock, with_work=False).run(json.dumps({"blocks": [block]}).encode())
    finally:
        store.close()
    with open_interface(path, first, NodeConfig()) as opened:
        yield opened


@pytest.fixture
def cancun(tmp_path: Path) -> Iterator[Interface]:
    with open_interface(tmp_path, genesis(CANCUN), DEV_CONFIG) as opened:
        yield opened


def traced(node: Interface, to: int | None, data: str = "", value: int = 0, gas: int = GAS) -> list[dict[str, Any]]:
    wanted = {"from": SENDER, "to": None if to is None else at(to), "data": "0x" + data}
    entries: list[dict[str, Any]] = node.ask(
        "trace_call", {**wanted, "gas": hex(gas), "value": hex(value)}, ["trace"], "0x0"
    )["trace"]
    return entries


def machine(node: Interface, to: int) -> dict[str, Any]:
    wanted = {"from": SENDER, "to": at(to), "gas": hex(GAS)}
    found: dict[str, Any] = node.ask("trace_call", wanted, ["vmTrace"], "0x0")["vmTrace"]
    return found


# --- flat traces ---------------------------------------------------------------------------------


def test_a_reverting_callee_shows_the_value_of_its_caller(istanbul: Interface) -> None:
    """A trace entry shows its own value only if the callee runs CALLDATALOAD, RETURN or STOP, or halts. Otherwise the
    entry shows the value of its caller.
    """
    _, silent = traced(istanbul, ASKS_REVERTS, value=7)
    _, loading = traced(istanbul, ASKS_LOADS, value=7)
    assert (silent["action"]["value"], loading["action"]["value"]) == ("0x7", "0x1")
    assert (silent["error"], "revertReason" in silent) == ("Reverted", False)


def test_the_first_end_at_a_depth_speaks_for_all_calls_there(istanbul: Interface) -> None:
    """All calls at one depth get the outcome of the first RETURN or REVERT at that depth in the transaction."""
    root, first, second = traced(istanbul, ASKS_BOTH)
    assert (first["error"], second["error"]) == ("Reverted", "Reverted")
    assert root["result"]["output"] == "0x"
    assert (root["subtraces"], first["traceAddress"], second["traceAddress"]) == (2, [0], [1])


def test_gas_used_leaves_out_what_a_nested_return_costs(istanbul: Interface) -> None:
    """The gas of a nested trace entry is counted up to its RETURN. So the memory cost of RETURN appears only in the
    outermost entry.
    """
    root, nested = traced(istanbul, ASKS_LONG)
    assert nested["result"]["gasUsed"] == hex(2 * PUSH)
    memory = 3 * 2048 + 2048 * 2048 // 512
    assert root["result"]["gasUsed"] == hex(7 * PUSH + CALL + 2 * PUSH + memory + POP)
    (alone,) = traced(istanbul, LONG_RETURN)
    assert alone["result"]["gasUsed"] == hex(2 * PUSH + memory)


def test_refunds_do_not_show_in_the_outermost_frame(istanbul: Interface) -> None:
    """Clearing a slot costs 5,000 gas at Istanbul. The trace does not subtract the refund."""
    (root,) = traced(istanbul, CLEARS)
    assert root["action"]["gas"] == hex(GAS - INTRINSIC)
    assert root["result"]["gasUsed"] == hex(2 * PUSH + 5_000)


def test_precompiled_contracts_are_listed_when_they_are_paid(istanbul: Interface) -> None:
    assert len(traced(istanbul, ASKS_IDENTITY)) == 1
    root, paid = traced(istanbul, PAYS_IDENTITY)
    assert (root["subtraces"], paid["traceAddress"], paid["action"]["value"]) == (1, [0], "0x1")
    assert paid["result"] == {"gasUsed": hex(15 + 3), "output": ZERO_WORD}
    (direct,) = traced(istanbul, IDENTITY, "aa")
    # a precompiled contract that is called directly shows no output
    assert direct["result"] == {"gasUsed": hex(15 + 3), "output": "0x"}
    # the call lacks one unit of gas: Besu adds the price to the gas used and shows no error
    (poor,) = traced(istanbul, IDENTITY, "aa", gas=INTRINSIC + 16 + 17)
    assert (poor["action"]["gas"], poor["result"]["gasUsed"]) == (hex(17 + 18), hex(18))
    assert "error" not in poor


def test_a_creation_pays_for_its_code(istanbul: Interface) -> None:
    root, made = traced(istanbul, CREATES)
    left = GAS - INTRINSIC - 5 * PUSH - 6 - CREATE
    assert made["action"]["gas"] == hex(left - left // 64)
    assert made["action"] == {
        **made["action"],
        "init": "0x" + ONE_BYTE,
        "from": at(CREATES),
    }
    assert "creationMethod" not in made["action"], "calls do not say it"
    # gas used: two pushes, and 200 gas per byte of code; RETURN does not expand the memory
    assert made["result"] == {"gasUsed": hex(2 * PUSH + 200), "address": made["result"]["address"], "code": "0x00"}
    assert root["result"]["gasUsed"] == hex(5 * PUSH + 6 + CREATE + 2 * PUSH + 3 + 200 + POP)


def test_creations_inside_a_creation_come_from_the_outermost_contract(istanbul: Interface) -> None:
    root, inner = traced(istanbul, None, create(ONE_BYTE, kind="f5") + "50" + ONE_BYTE, gas=2 * GAS)
    assert inner["action"]["from"] == root["result"]["address"]
    assert (root["result"]["code"], "output" in root["result"]) == ("0x00", False)


def test_a_rejected_creation_takes_the_end_of_its_creator(istanbul: Interface) -> None:
    """A rejected creation runs no code. So the next RETURN closes the trace entry of the creation, and the creator's
    entry stays open.
    """
    root, refused = traced(istanbul, OVERDRAWN_CREATE)
    assert root["result"] == {"gasUsed": "0x0", "output": "0x"}
    assert refused["action"]["init"] == "0x" + CONTRACTS[OVERDRAWN_CREATE]
    assert (refused["result"]["address"], refused["result"]["code"]) == (at(OVERDRAWN_CREATE), "0x")
    assert (root["subtraces"], refused["action"]["value"]) == (1, "0x0")


def test_an_entry_that_nothing_closes_shows_what_was_spent_before_it(istanbul: Interface) -> None:
    """A trace entry that no instruction closes shows the negative of the gas spent before it, as a 64-bit number."""
    _, invalid, first, second = traced(istanbul, TWICE_OVERDRAWN)
    assert (invalid["error"], first["traceAddress"], second["traceAddress"]) == ("Bad instruction", [1], [1, 0])
    spent = 7 * PUSH + CALL + POP + 5 * PUSH + 6 + CREATE
    assert first["result"]["gasUsed"] == hex(2**64 - spent)
    assert "error" not in second


def test_a_creation_without_gas_is_an_entry_of_its_own(istanbul: Interface) -> None:
    root, starved = traced(istanbul, STARVED_CREATE)
    assert (starved["type"], starved["action"]["gas"], starved["error"]) == ("create", "0x0", "Out of gas")
    assert (root["result"], root["subtraces"]) == ({"gasUsed": "0x0", "output": "0x"}, 1)


def test_a_creation_over_a_contract_is_an_illegal_state_change(istanbul: Interface) -> None:
    root, first, second = traced(istanbul, TWO_CREATE2, gas=3 * GAS)
    assert (first["result"]["code"], second["error"]) == ("0x00", "Illegal state change")
    assert (root["subtraces"], second["traceAddress"]) == (2, [1])


def test_code_that_is_not_accepted_ends_two_entries(cancun: Interface) -> None:
    """If created code is rejected, the last instruction before RETURN ends the creation, and RETURN ends the creator's
    trace entry.
    """
    init = "60ef60005360016000f3"
    root, refused = traced(cancun, None, create(init) + "5000", gas=2 * GAS)
    assert refused["error"] == "Code is invalid"
    assert (root["action"]["init"], root["result"]["code"]) == ("0x" + init, "0xef")


def test_the_end_of_a_borrowed_contract(istanbul: Interface) -> None:
    root, borrowed, end = traced(istanbul, DELEGATES_HEIR)
    assert end["action"] == {"address": at(DELEGATES_HEIR), "balance": "0x64", "refundAddress": SENDER}
    assert (borrowed["action"]["callType"], borrowed["action"]["from"]) == ("delegatecall", at(DELEGATES_HEIR))
    assert (borrowed["subtraces"], end["traceAddress"], end["result"]) == (1, [0, 0], None)
    assert borrowed["result"] == {"gasUsed": hex(2 + 5_000), "output": "0x"}
    assert root["subtraces"] == 1


# --- machine traces ------------------------------------------------------------------------------


def test_the_effects_of_a_call_are_read_off_what_follows(istanbul: Interface) -> None:
    """If the call itself left nothing in memory, `mem` shows the final output of the caller."""
    operations = machine(istanbul, ASKS_NOBODY)["ops"]
    asked, popped = operations[7], operations[8]
    assert asked["sub"] == {"code": "0x", "ops": []}
    assert asked["cost"] == CALL + 0xFFFF
    assert asked["ex"] == {
        "used": popped["ex"]["used"] + POP,
        "push": ["0x1"],
        "mem": {"data": ZERO_WORD, "off": 0},
        "store": None,
    }
    precompiled = machine(istanbul, ASKS_IDENTITY)["ops"][7]
    # the cost includes one word of memory and the price of the precompiled contract
    assert precompiled["cost"] == CALL + 3 + 18
    assert precompiled["ex"]["mem"] == {"data": ZERO_WORD, "off": 0}


def test_the_cost_of_a_paid_call_has_its_stipend(istanbul: Interface) -> None:
    paid = machine(istanbul, ASKS_REVERTS)["ops"][7]
    assert paid["cost"] == CALL + VALUE_TRANSFER + 0xFFFF + STIPEND
    assert [one["pc"] for one in paid["sub"]["ops"]] == [0, 2, 4]
    assert paid["sub"]["code"] == "0x" + REVERT


def test_instructions_that_halt(istanbul: Interface) -> None:
    """An instruction that ran out of gas has no effects. An invalid instruction does not appear."""
    starved = machine(istanbul, STARVES)["ops"][7]["sub"]["ops"]
    assert [one["pc"] for one in starved] == [0, 1, 3, 0, 1, 3]
    assert (starved[-1]["ex"], starved[-1]["cost"]) == (None, 8)
    assert machine(istanbul, INVALID) == {"code": "0x", "ops": []}
    assert machine(istanbul, STOPS) == {"code": "0x", "ops": []}


def test_a_callee_that_shows_nothing_hides_what_follows(istanbul: Interface) -> None:
    """If a callee shows no instruction, later instructions of its caller appear inside the callee. The trace uses the
    depth of the last shown instruction.
    """
    operations = machine(istanbul, ASKS_INVALID)["ops"]
    assert len(operations) == 8
    hidden = operations[7]["sub"]
    assert hidden["code"] == "0x" + CONTRACTS[ASKS_INVALID]
    assert [one["cost"] for one in hidden["ops"]] == [POP, 0]


def test_a_rejected_call_shows_its_caller(istanbul: Interface) -> None:
    refused = machine(istanbul, OVERDRAWS)["ops"][7]
    assert refused["sub"] == {"code": "0x" + CONTRACTS[OVERDRAWS], "ops": []}
    # the call is rejected, so the caller gets the stipend back
    assert refused["cost"] == CALL + VALUE_TRANSFER - STIPEND
    assert refused["ex"]["push"] == ["0x0"]


# --- replays, filters, rewards -------------------------------------------------------------------


def test_a_replay_shows_why_it_reverted(cancun: Interface) -> None:
    raws = [
        legacy_transaction(DEV_KEYS[0], 0, to=None, gas=GAS, data=bytes.fromhex("60206000fd")),
        legacy_transaction(DEV_KEYS[0], 1, to=bytes.fromhex(at(INVALID)[2:]), gas=GAS),
    ]
    cancun.run(cancun.node.mine(*raws))
    reverted, halted = cancun.ask("trace_replayBlockTransactions", "0x1", ["trace"])
    assert (reverted["output"], reverted["revertReason"]) == ("0x", ZERO_WORD)
    assert reverted["trace"][0]["revertReason"] == ZERO_WORD
    assert (halted["output"], "revertReason" in halted) == ("0x", False)
    assert halted["trace"][0]["error"] == "Bad instruction"
    asked = cancun.ask("trace_call", {"from": SENDER, "data": "0x60206000fd"}, [])
    assert asked == {"output": ZERO_WORD, "trace": [], "vmTrace": None, "stateDiff": None}


def test_rewards_of_both_chains(istanbul: Interface, cancun: Interface) -> None:
    assert istanbul.ask("trace_block", "0x1")[-1]["action"] == {
        "author": at(0xC0),
        "rewardType": "block",
        "value": hex(2 * 10**18),
    }
    cancun.run(cancun.node.seal())
    (only,) = cancun.ask("trace_block", "0x1")
    assert only["action"]["value"] == "0x0"


def test_only_calls_have_a_recipient(istanbul: Interface) -> None:
    """`toAddress` finds calls, and finds rewards by their author. It does not find creations and self-destructs."""
    wanted = {"fromBlock": "0x0", "toBlock": "0x1"}
    everything = istanbul.ask("trace_filter", wanted)
    assert [one["type"] for one in everything] == ["call", "call", "create", "call", "suicide", "reward"]
    sent = istanbul.ask("trace_filter", {**wanted, "fromAddress": [SENDER, at(CREATES), at(HEIR)]})
    assert [one["type"] for one in sent] == ["call", "call", "create", "call"]
    created = everything[2]["result"]["address"]
    received = istanbul.ask("trace_filter", {**wanted, "toAddress": [created, SENDER, at(HEIR), at(0xC0)]})
    assert [one["type"] for one in received] == ["call", "reward"]
    assert istanbul.ask("trace_filter", {**wanted, "fromAddress": [at(0xC0)]}) == []


def test_the_flat_call_tracer_shows_the_tree_as_a_list(istanbul: Interface) -> None:
    """Texts, gas and failures match the call tracer: the outermost call shows the whole gas limit."""

    def flat(to: int, **config: bool) -> list[dict[str, Any]]:
        asked = {"from": SENDER, "to": at(to), "gas": hex(GAS)}
        options = {"tracer": "flatCallTracer", "tracerConfig": config}
        found: list[dict[str, Any]] = istanbul.ask("debug_traceCall", asked, "0x0", options)
        return found

    root, reverted = flat(ASKS_REVERTS)
    assert root["action"]["gas"] == hex(GAS)
    assert int(root["result"]["gasUsed"], 16) > INTRINSIC
    assert (root["blockHash"], root["blockNumber"], root["transactionHash"], root["transactionPosition"]) == (
        None,
        0,
        None,
        0,
    )
    assert (reverted["error"], reverted["action"]["value"]) == ("execution reverted", "0x1")
    assert reverted["result"] == {"gasUsed": hex(2 * PUSH), "output": "0x"}
    assert flat(ASKS_REVERTS, convertParityErrors=True)[1]["error"] == "Reverted"
    assert (len(flat(ASKS_IDENTITY)), len(flat(ASKS_IDENTITY, includePrecompiles=True))) == (1, 2)
    _, invalid = flat(ASKS_INVALID, convertParityErrors=True)
    assert (invalid["error"], "result" in invalid) == ("Bad instruction", False)
    _, borrowed, end = flat(DELEGATES_HEIR)
    assert (borrowed["subtraces"], end["type"], "result" in end) == (1, "suicide", False)
    mined = istanbul.ask("debug_traceBlockByNumber", "0x1", {"tracer": "flatCallTracer"})[1]
    assert [one["transactionPosition"] for one in mined["result"]] == [1, 1]
    assert mined["result"][1]["action"]["creationMethod"] == "create"


# --- refusals ------------------------------------------------------------------------------------


def test_calls_that_cannot_be_traced(istanbul: Interface) -> None:
    plain = {"from": SENDER, "to": at(STOPS)}
    poor = {"from": at(NOBODY), "to": at(STOPS), "value": "0x1"}
    assert istanbul.error("trace_call", plain, ["trace"], "0x99")[0] == -32000
    assert istanbul.error("trace_call", plain)[0] == -32602
    assert istanbul.error("trace_call", poor, ["trace"])[0] == -32004
    assert istanbul.error("trace_callMany", [[plain, ["trace"]]])[0] == -32602
    assert istanbul.error("trace_callMany", [[plain, ["trace"]]], "0x99")[0] == -32000
    assert istanbul.error("trace_callMany", [[plain, ["trace"]], [poor, ["trace"]]], "latest")[0] == -32603


def test_a_signed_transaction_is_checked_like_any_other(istanbul: Interface) -> None:
    def asked(nonce: int, **members: Any) -> Any:
        raw = legacy_transaction(DEV_KEYS[0], nonce, to=bytes.fromhex(at(STOPS)[2:]), **members)
        return istanbul.request("trace_rawTransaction", "0x" + raw.hex(), ["stateDiff"])

    diff = asked(3, gas=30_000)["result"]["stateDiff"]
    price = int(diff[at(0xC0)]["balance"]["*"]["to"], 16) - int(diff[at(0xC0)]["balance"]["*"]["from"], 16)
    paid = int(diff[SENDER]["balance"]["*"]["from"], 16) - int(diff[SENDER]["balance"]["*"]["to"], 16)
    assert price == paid > 0
    assert asked(2)["error"]["code"] == -32001
    assert asked(4)["error"]["code"] == -32006
    assert asked(3, gas=20_000)["error"]["code"] == -32003
    assert istanbul.error("trace_rawTransaction", "0xc0", ["trace"])[0] == -32602

"""Tests traces in Pantheon's format, and common properties of named tracers."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface

FIRST, SECOND = "0x" + "c1" * 20, "0x" + "c2" * 20
SENDER = "0x" + DEV_KEYS[0].address.hex()
NOWHERE = "0x" + "ab" * 32

STORES = "602a600755"  # this code runs SSTORE(7, 42)
STOPS = "00"
REVERTS = "60005460aa6000526020601ffd"  # this code runs SLOAD, then REVERT(31, 32)
CALLS_SECOND = f"6000600060006000600073{SECOND[2:]}61ffff" + "f1"
DIES = f"73{SECOND[2:]}ff"


def word(number: int) -> str:
    return f"{number:064x}"


def trace(interface: Interface, codes: dict[str, str], options: dict[str, Any] | None = None, **call: Any) -> Any:
    """Trace a call to the address FIRST, with these contract codes by address."""
    overrides = {address: {"code": "0x" + code} for address, code in codes.items()}
    asked = {"from": SENDER, "to": FIRST, "gas": "0xf4240", **call}
    return interface.ask("debug_traceCall", asked, "latest", {**(options or {}), "stateOverrides": overrides})


def ops(result: Any) -> list[str]:
    return [row["op"] for row in result["structLogs"]]


def test_a_transfer_is_one_row(dev: Interface) -> None:
    raw = legacy_transaction(DEV_KEYS[0], 0, to=DEV_KEYS[1].address, value=1)
    _, (hash,) = dev.run(dev.node.mine(raw))
    row = {
        "pc": 0,
        "op": "STOP",
        "gas": 0,
        "gasCost": 0,
        "depth": 1,
        "stack": [],
        "memory": [],
        "storage": {},
        "reason": None,
    }
    expected = {"gas": 21000, "failed": False, "returnValue": "", "structLogs": [row]}
    assert dev.ask("debug_traceTransaction", "0x" + hash.hex()) == expected
    nothing = {"disableStorage": True, "disableMemory": True, "disableStack": True}
    bare = dev.ask("debug_traceTransaction", "0x" + hash.hex(), nothing)
    assert bare["structLogs"] == [{**row, "stack": None, "memory": None, "storage": None}]
    number = dev.ask("eth_blockNumber")
    assert dev.ask("debug_traceBlockByNumber", number) == [expected]
    block = dev.ask("eth_getBlockByNumber", number)["hash"]
    assert dev.ask("debug_traceBlockByHash", block) == [expected]
    assert dev.ask("debug_traceBlock", dev.ask("debug_getRawBlock", number)) == [expected]
    assert dev.ask("debug_getRawTransaction", "0x" + hash.hex()) == "0x" + raw.hex()
    named = dev.ask("debug_traceBlockByNumber", number, {"tracer": "callTracer"})
    assert named[0]["txHash"] == "0x" + hash.hex()
    assert named[0]["result"]["gas"] == named[0]["result"]["gasUsed"] == "0x5208"


def test_storage_shows_after_and_the_rest_before_the_instruction(dev: Interface) -> None:
    result = trace(dev, {FIRST: STORES + "6001600052" + STOPS})
    rows = result["structLogs"]
    assert ops(result) == ["PUSH1", "PUSH1", "SSTORE", "PUSH1", "PUSH1", "MSTORE", "STOP"]
    assert rows[1]["storage"] == {}
    assert rows[1]["stack"] == [word(42)]
    assert rows[2]["stack"] == [word(42), word(7)]
    assert rows[2]["storage"] == rows[6]["storage"] == {word(7): word(42)}
    assert rows[5]["memory"] == []
    assert rows[6]["memory"] == [word(1)]


def test_what_a_callee_gets_is_not_a_cost_of_the_call(dev: Interface) -> None:
    result = trace(dev, {FIRST: CALLS_SECOND + STOPS, SECOND: "5b" + STOPS})
    call = next(row for row in result["structLogs"] if row["op"] == "CALL")
    inner = [row for row in result["structLogs"] if row["depth"] == 2]
    assert (call["gasCost"], inner[0]["gas"]) == (2600, 0xFFFF)
    assert [row["op"] for row in inner] == ["JUMPDEST", "STOP"]


def test_a_call_to_an_empty_account_shows_one_row_and_a_precompile_none(dev: Interface) -> None:
    nobody = trace(dev, {FIRST: CALLS_SECOND + STOPS})
    assert ops(nobody)[-3:] == ["CALL", "STOP", "STOP"]
    identity = "6000600060006000600060045af1" + STOPS
    assert ops(trace(dev, {FIRST: identity}))[-2:] == ["CALL", "STOP"]


def test_a_revert_gives_its_reason_on_its_row(dev: Interface) -> None:
    result = trace(dev, {FIRST: REVERTS})
    rows = result["structLogs"]
    assert result["failed"]
    assert result["returnValue"] == ""
    assert rows[-1]["reason"] == "aa" + "00" * 31
    assert "error" not in rows[-1]
    assert {row["reason"] for row in rows[:-1]} == {None}


@pytest.mark.parametrize(
    ("code", "error", "cost"),
    [
        ("fe", "INVALID_OPERATION", 0),
        ("0c", "INVALID_OPERATION", 0),
        ("50", "INSUFFICIENT_STACK_ITEMS", 0),
        ("600356", "INVALID_JUMP_DESTINATION", 8),
        ("63ffffffff51", "INSUFFICIENT_GAS", 3 + 3 * (2**27 + 1) + (2**27 + 1) ** 2 // 512),
    ],
)
def test_an_exceptional_halt_is_named(dev: Interface, code: str, error: str, cost: int) -> None:
    result = trace(dev, {FIRST: code})
    last = result["structLogs"][-1]
    assert result["failed"]
    assert last["error"] == [error]
    assert last["gasCost"] == cost


STATIC_SECOND = f"600060006000600073{SECOND[2:]}6203d090" + "fa00"
WRITES = [
    ("6001600055", "SSTORE", 22_100),
    ("60016000a0", "LOG0", 375 + 8 + 3),
    ("600060006000f0", "CREATE", 32_000),
    ("6000600060006000f5", "CREATE2", 32_000),
    (f"73{'dd' * 20}ff", "SELFDESTRUCT", 5_000 + 2_600),
    ("600160005d", "TSTORE", 100),
    ("600155", "SSTORE", 0),
]


@pytest.mark.parametrize("options", [{}, {"enableMemory": False}], ids=["original", "standard"])
@pytest.mark.parametrize(("code", "name", "cost"), WRITES, ids=[name for _, name, _ in WRITES[:-1]] + ["underflow"])
def test_a_write_in_a_static_call_shows_what_it_would_have_cost(
    dev: Interface, code: str, name: str, cost: int, options: dict[str, Any]
) -> None:
    rows = trace(dev, {FIRST: STATIC_SECOND, SECOND: code}, options)["structLogs"]
    (last,) = [row for row in rows if row["op"] == name]
    assert (last["depth"], last["error"], last["gasCost"]) == (2, ["ILLEGAL_STATE_CHANGE"], cost)


@pytest.mark.parametrize(("options", "handed_on"), [({}, 0), ({"enableMemory": False}, 2_000)])
def test_a_transfer_in_a_static_call_does_too(dev: Interface, options: dict[str, Any], handed_on: int) -> None:
    code = f"6000600060006000600173{'dd' * 20}6107d0f1"
    (row,) = [row for row in trace(dev, {FIRST: STATIC_SECOND, SECOND: code}, options)["structLogs"] if "error" in row]
    assert (row["op"], row["gasCost"]) == ("CALL", 2_600 + 9_000 + 25_000 + handed_on)


def test_writes_of_a_failed_call_are_forgotten(dev: Interface) -> None:
    code = (
        "3615601057" + "6005600255" + "60006000fd" + "00" + "5b" + "6001600155" + "60006000600160006000305af1" + STOPS
    )
    result = trace(dev, {FIRST: code})
    inner = [row for row in result["structLogs"] if row["depth"] == 2]
    assert inner[-1]["storage"] == {word(1): word(1), word(2): word(5)}
    assert result["structLogs"][-1]["storage"] == {word(1): word(1)}


def test_the_call_tracer_shows_the_tree(dev: Interface) -> None:
    tree = trace(dev, {FIRST: CALLS_SECOND + DIES, SECOND: REVERTS}, {"tracer": "callTracer"})
    assert (tree["type"], tree["from"], tree["to"], tree["gas"]) == ("CALL", SENDER, FIRST, "0xf4240")
    failed, end = tree["calls"]
    assert failed["error"] == "execution reverted"
    assert failed["output"] == "0xaa" + "00" * 31
    assert (end["type"], end["from"], end["to"], end["value"]) == ("SELFDESTRUCT", FIRST, SECOND, "0x0")
    top = trace(
        dev, {FIRST: CALLS_SECOND, SECOND: STOPS}, {"tracer": "callTracer", "tracerConfig": {"onlyTopCall": True}}
    )
    assert "calls" not in top
    logging = "60aa60006000a100"
    logs = trace(dev, {FIRST: logging}, {"tracer": "callTracer", "tracerConfig": {"withLog": True}})["logs"]
    assert logs == [{"address": FIRST, "topics": ["0x" + word(0xAA)], "data": "0x", "position": "0x0"}]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("0c", "invalid opcode: opcode 0xc not defined"),
        ("6001" + "01", "stack underflow (1 <=> 2)"),
        ("600056", "invalid jump destination"),
        ("5b600056", "out of gas"),
    ],
)
def test_the_call_tracer_says_what_went_wrong(dev: Interface, code: str, words: str) -> None:
    assert trace(dev, {FIRST: code}, {"tracer": "callTracer"})["error"] == words


def test_the_prestate_tracer_shows_before_and_changes(dev: Interface) -> None:
    before = trace(dev, {FIRST: STORES}, {"tracer": "prestateTracer"})
    assert before[FIRST]["code"] == "0x" + STORES
    assert before[FIRST]["storage"] == {"0x" + word(7): "0x" + word(0)}
    assert SENDER in before
    changes = trace(dev, {FIRST: STORES}, {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}})
    assert changes["post"][FIRST] == {"storage": {"0x" + word(7): "0x" + word(42)}}
    assert changes["post"][SENDER]["nonce"] == changes["pre"][SENDER].get("nonce", 0) + 1
    assert set(changes["pre"]) == {FIRST, SENDER}


def test_selectors_and_flat_calls(dev: Interface) -> None:
    called = trace(dev, {FIRST: STOPS}, {"tracer": "4byteTracer"}, data="0x27dc297e" + "00" * 8)
    assert called == {"0x27dc297e-8": 1}
    flat = trace(dev, {FIRST: CALLS_SECOND, SECOND: STOPS}, {"tracer": "flatCallTracer"})
    assert [entry["traceAddress"] for entry in flat] == [[], [0]]


def test_options_and_blocks_that_make_no_sense(dev: Interface) -> None:
    assert dev.error("debug_traceCall", {}, "latest", {"tracer": "nobody"})[0] == -32602
    assert dev.error("debug_traceBlockByNumber", "latest", {"tracer": 5})[0] == -32602
    assert dev.error("debug_traceBlock", "0x00")[0] == -32602
    assert dev.error("debug_traceBlock", "0x0")[0] == -32602
    assert dev.ask("debug_traceTransaction", NOWHERE) is None
    assert dev.ask("debug_traceBlockByNumber", "0x0") is None
    genesis = dev.ask("eth_getBlockByNumber", "0x0")["hash"]
    # Besu and geth return an error for named tracers at genesis
    refused = (-32000, "Genesis block is not traceable")
    assert dev.error("debug_traceBlockByNumber", "0x0", {"tracer": "callTracer"}) == refused
    assert dev.error("debug_traceBlockByHash", genesis, {"tracer": "callTracer"}) == refused
    assert dev.ask("debug_traceBlockByNumber", "0x99999", {"tracer": "callTracer"}) is None
    assert dev.ask("debug_traceBlockByNumber", "0x99999") is None
    assert dev.ask("debug_traceBlockByHash", NOWHERE) is None


def test_a_block_whose_parent_is_unknown(dev: Interface, sample: Interface) -> None:
    assert dev.error("debug_traceBlock", sample.ask("debug_getRawBlock", "0x5")) == (-32000, "Parent block not found")


def test_a_call_that_breaks_a_rule_is_refused_like_any_call(dev: Interface) -> None:
    assert dev.error("debug_traceCall", {"from": SENDER, "to": FIRST, "gas": "0x1"})[0] == -32003


def test_a_traced_call_need_not_be_affordable(dev: Interface) -> None:
    """As in Pantheon, a traced call runs even if its sender cannot pay for it. With `strict`, the sender must be able
    to pay, as in eth_call.
    """
    costly = {"from": "0x" + "99" * 20, "to": FIRST, "value": "0x5", "gasPrice": "0x7"}
    assert dev.ask("debug_traceCall", costly, "latest", {"tracer": "callTracer"})["value"] == "0x5"
    assert dev.error("debug_traceCall", {**costly, "strict": True})[0] == -32004
    assert dev.error("eth_call", costly)[0] == -32004
    most = {"to": FIRST, "value": hex(2**256 - 1)}
    assert dev.error("debug_traceCall", most)[0] == -32004
    base_fee = {"blockOverrides": {"baseFeePerGas": "0xa"}, "tracer": "callTracer"}
    assert dev.ask("debug_traceCall", costly, "latest", base_fee)["gasUsed"] == "0x5208"
    assert dev.error("debug_traceCall", {**costly, "strict": True, "from": SENDER}, "latest", base_fee)[0] == -32009


def test_a_call_on_a_block_that_is_not_there_is_an_error(dev: Interface) -> None:
    assert dev.error("debug_traceCall", {"to": FIRST}, "0x99999") == (-32000, "Block not found")
    assert dev.error("debug_traceCall", {"to": FIRST}, NOWHERE) == (-32000, "Block not found")


def _nested(name: str, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {name: found}
    return found


# --- combined tracers ----------------------------------------------------------------------------


def test_the_mux_tracer_shows_several_traces_under_their_names(dev: Interface) -> None:
    _, (hash,) = dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[1], 0, value=5)))
    name = "0x" + hash.hex()
    parts = {"callTracer": {"onlyTopCall": True}, "prestateTracer": {"diffMode": True}, "4byteTracer": None}
    options = {"tracer": "muxTracer", "tracerConfig": parts}
    expected = {
        one: dev.ask("debug_traceTransaction", name, {"tracer": one, "tracerConfig": config or {}})
        for one, config in parts.items()
    }
    assert dev.ask("debug_traceTransaction", name, options) == expected
    assert dev.ask("debug_traceBlockByNumber", "0x1", options) == [{"txHash": name, "result": expected}]
    call = {"to": "0x" + "d0" * 20, "value": "0x1"}
    assert set(dev.ask("debug_traceCall", call, "latest", options)) == set(parts)
    assert dev.ask("debug_traceTransaction", "0x" + "ab" * 32, options) is None


def test_the_noop_tracer_runs_and_shows_nothing(dev: Interface) -> None:
    _, (hash,) = dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[1], 0)))
    name, options = "0x" + hash.hex(), {"tracer": "noopTracer"}
    assert dev.ask("debug_traceTransaction", name, options) == {}
    assert dev.ask("debug_traceBlockByNumber", "0x1", options) == [{"txHash": name, "result": {}}]
    assert dev.ask("debug_traceTransaction", "0x" + "ab" * 32, options) is None


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"noTracer": {}}, "tracer: noTracer is not known"),
        ({"callTracer": 5}, "tracerConfig: an object is expected"),
        ({"muxTracer": {"callTracer": {}}}, "tracerConfig: muxTracer within muxTracer is not supported"),
        ({"noopTracer": {}}, "tracerConfig: noopTracer within muxTracer is not supported"),
        (_nested("muxTracer", 9), "tracerConfig: nested more than 8 levels deep"),
        (_nested("muxTracer", 500), "tracerConfig: nested more than 8 levels deep"),
    ],
)
def test_a_mux_of_other_tracers_is_refused(dev: Interface, config: dict[str, Any], problem: str) -> None:
    options = {"tracer": "muxTracer", "tracerConfig": config}
    assert dev.request("debug_traceTransaction", "0x" + "ab" * 32, options)["error"]["data"].startswith(problem)


def test_deeply_nested_options_have_one_error_or_no_effect(dev: Interface) -> None:
    _, (hash,) = dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[1], 0, value=5)))
    name, deep = "0x" + hash.hex(), _nested("a", 300)
    for method, params in (("debug_traceTransaction", name), ("debug_traceBlockByNumber", "0x1")):
        assert dev.error(method, params, {"tracer": "callTracer", "tracerConfig": deep})[0] == -32602
        plain = dev.ask(method, params, {"tracer": "callTracer"})
        assert dev.ask(method, params, {"tracer": "callTracer", "opcodes": deep}) == plain


def test_the_mux_tracer_shows_call_trees_of_any_depth(dev: Interface) -> None:
    code = "0x" + "6000600060006000600030" + "5a" + "f1"  # calls itself with all gas
    call = {"to": "0x" + "d0" * 20, "gas": "0x1c9c380"}
    overrides = {"stateOverrides": {call["to"]: {"code": code}}}
    options = {"tracer": "muxTracer", "tracerConfig": {"callTracer": {}}, **overrides}
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)  # for the JSON reader of this test
    try:
        alone = dev.ask("debug_traceCall", call, "latest", {"tracer": "callTracer", **overrides})
        both = dev.ask("debug_traceCall", call, "latest", options)["callTracer"]
        depth = 0
        while "calls" in alone:
            (alone,), (both,), depth = alone["calls"], both["calls"], depth + 1
        assert depth > 520, "more deeply nested than `orjson` reads"
        assert "calls" not in both
    finally:
        sys.setrecursionlimit(limit)

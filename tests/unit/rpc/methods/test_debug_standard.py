"""Tests struct logs in geth's format, selected by its options (json-rpc.md 5.9 [M], 9 line 20)."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface

FIRST, SECOND = "0x" + "c1" * 20, "0x" + "c2" * 20
SENDER = "0x" + DEV_KEYS[0].address.hex()
STORES = "602a600755" + "6001600054" + "50505b00"  # this code runs SSTORE(7, 42), PUSH1 1, SLOAD(0), POP, POP, JUMPDEST
CALLS = "60aa600052" + f"6020600060006000600073{SECOND[2:]}61fffff1" + "00"
ANSWERS = "602a60005260206000f3"


def word(number: int) -> str:
    return f"0x{number:064x}"


def rows(interface: Interface, options: dict[str, Any], codes: dict[str, str]) -> list[dict[str, Any]]:
    """Return the struct log rows of a traced call to the address FIRST."""
    overrides = {address: {"code": "0x" + code} for address, code in codes.items()}
    call = {"from": SENDER, "to": FIRST, "gas": "0xf4240"}
    result = interface.ask("debug_traceCall", call, "latest", {**options, "stateOverrides": overrides})
    logs: list[dict[str, Any]] = result["structLogs"]
    return logs


def test_members_without_anything_to_say_are_left_out(dev: Interface) -> None:
    raw = legacy_transaction(DEV_KEYS[0], 0, to=DEV_KEYS[1].address, value=1)
    _, (hash,) = dev.run(dev.node.mine(raw))
    row = {"pc": 0, "op": "STOP", "gas": 0, "gasCost": 0, "depth": 1, "stack": []}
    expected = {"gas": 21000, "failed": False, "returnValue": "0x", "structLogs": [row]}
    assert dev.ask("debug_traceTransaction", "0x" + hash.hex(), {"enableMemory": True}) == expected
    # an empty tracer name counts as a name, so each trace of the block is wrapped in an object (json-rpc.md 9, line 19)
    (named,) = dev.ask("debug_traceBlockByNumber", "latest", {"tracer": ""})
    assert named == {"txHash": "0x" + hash.hex(), "result": expected}
    assert dev.ask("debug_traceBlockByNumber", "latest", {"enableMemory": False}) == [expected]
    bare = dev.ask("debug_traceTransaction", "0x" + hash.hex(), {"disableStack": True, "limit": 0})
    assert "stack" not in bare["structLogs"][0]


def test_storage_shows_on_the_rows_that_touch_it(dev: Interface) -> None:
    shown = rows(dev, {"enableMemory": False}, {FIRST: STORES})
    assert {row["op"] for row in shown if "storage" in row} == {"SSTORE", "SLOAD"}
    assert shown[2]["storage"] == {word(7): word(42)}
    assert shown[5]["storage"] == {word(0): word(0), word(7): word(42)}
    assert shown[2]["stack"] == ["0x2a", "0x7"]
    assert not any("storage" in row for row in rows(dev, {"limit": 100, "disableStorage": True}, {FIRST: STORES}))


def test_gas_that_is_handed_on_counts_and_memory_must_be_asked_for(dev: Interface) -> None:
    codes = {FIRST: CALLS, SECOND: ANSWERS}
    shown = rows(dev, {"enableMemory": True, "enableReturnData": True}, codes)
    call = next(row for row in shown if row["op"] == "CALL")
    inner = [row for row in shown if row["depth"] == 2]
    assert call["gasCost"] == 2600 + inner[0]["gas"]
    assert call["memory"] == [word(0xAA)]
    assert "memory" not in inner[0]
    assert shown[-1]["returnData"] == word(42)
    assert not any("memory" in row for row in rows(dev, {"enableReturnData": True}, codes))
    assert any("memory" in row for row in rows(dev, {"enableReturnData": True, "disableMemory": False}, codes))


def test_reasons_errors_and_refunds(dev: Interface) -> None:
    overrides = {FIRST: {"code": "0x" + "5f5f5560aa6000526020601ffd", "state": {word(0): word(1)}}}
    call = {"from": SENDER, "to": FIRST, "gas": "0xf4240"}
    result = dev.ask("debug_traceCall", call, "latest", {"enableMemory": False, "stateOverrides": overrides})
    assert (result["failed"], result["returnValue"]) == (True, "0x")
    assert [row.get("refund") for row in result["structLogs"][1:4]] == [None, 4800, 4800]
    assert result["structLogs"][-1]["reason"] == "0xaa" + "00" * 31
    assert rows(dev, {"limit": 9}, {FIRST: "0c"})[-1]["error"] == ["INVALID_OPERATION"]


def test_rows_can_be_limited_and_chosen(dev: Interface) -> None:
    codes = {FIRST: STORES}
    overrides = {address: {"code": "0x" + code} for address, code in codes.items()}
    call = {"from": SENDER, "to": FIRST, "gas": "0xf4240"}
    limited = dev.ask("debug_traceCall", call, "latest", {"limit": 2, "stateOverrides": overrides})
    assert len(limited["structLogs"]) == 2
    assert limited["truncated"] is True
    # the row after a selected instruction shows the effect of that instruction
    assert [row["op"] for row in rows(dev, {"opcodes": ["sstore", "SLOAD"]}, codes)] == [
        "SSTORE",
        "PUSH1",
        "SLOAD",
        "POP",
    ]


@pytest.mark.parametrize("options", [{"limit": -1}, {"limit": "5"}, {"opcodes": "SSTORE"}, {"opcodes": [5]}])
def test_options_that_make_no_sense_are_refused(dev: Interface, options: dict[str, Any]) -> None:
    assert dev.error("debug_traceCall", {"to": FIRST}, "latest", options)[0] == -32602

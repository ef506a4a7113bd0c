"""Tests call trees for a terminal: names, reasons, console output and source lines."""

from __future__ import annotations

from pathlib import Path

from ophion.native.crypto import keccak256
from ophion.sdk.execution_log.call_report import CallReport
from tests.unit.sdk.execution_log.test_contract_index import ABI, CREATION, OUTPUT, RUNTIME, Abi, standard_json

SHOP = "0x" + "11" * 20
CONSOLE = "0x000000000000000000636f6e736f6c652e6c6f67"
HELLO = (
    keccak256(b"log(string)")[:4]
    + (32).to_bytes(32, "big")
    + (8).to_bytes(32, "big")
    + b"hi\x1b[31m\n".ljust(32, b"\0")
)
FRAME = {
    "type": "CALL",
    "from": "0x" + "22" * 20,
    "to": SHOP,
    "gasUsed": "0x5208",
    "input": "0x" + (Abi(ABI).function("take").selector + (5).to_bytes(32, "big")).hex(),
    "output": "0x" + OUTPUT.hex(),
    "error": "execution reverted",
    "pc": 2,
    "calls": [{"type": "STATICCALL", "from": SHOP, "to": CONSOLE, "input": "0x" + HELLO.hex(), "gasUsed": "0x0"}],
}


def report(folder: Path) -> CallReport:
    codes = {bytes.fromhex("11" * 20): bytes.fromhex(RUNTIME)}
    return CallReport(FRAME, standard_json(folder), lambda address: codes.get(address, b""))


def test_a_failed_call_has_names_reason_gas_and_line(tmp_path: Path) -> None:
    found = report(tmp_path)
    assert found.has_failed
    assert found.reason == "TooFew(available=1, needed=5)"
    first, second = found.lines(is_coloured=False)
    assert first.startswith(
        "Shop.take(amount=5) !! TooFew(available=1, needed=5) [21000 gas] at shop.sol:2: function take"
    )
    assert second == "└── console.log: hi\\x1b[31m\\n"


def test_colours_are_used_on_request_only(tmp_path: Path) -> None:
    assert "\x1b" not in "".join(report(tmp_path).lines(is_coloured=False))
    assert report(tmp_path).lines(is_coloured=True)[0].startswith("\x1b[31mShop.take")


def test_console_output_cannot_control_the_terminal(tmp_path: Path) -> None:
    assert report(tmp_path).console == ["hi\\x1b[31m", ""]


def test_a_creation_is_named_by_its_code(tmp_path: Path) -> None:
    frame = {"type": "CREATE", "from": SHOP, "to": "0x" + "33" * 20, "input": "0x" + CREATION, "gasUsed": "0x1"}
    found = CallReport(frame, standard_json(tmp_path), lambda address: b"")
    assert found.lines(is_coloured=False) == ["new Shop [1 gas]"]

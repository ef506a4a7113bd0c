"""Tests call trees of hostile contracts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ophion.abi.interface import decode_error
from ophion.sdk.call_tree import CallTree
from ophion.sdk.errors import Reverted
from ophion.sdk.pytest_plugin import _last_call_tree

ADDRESS = "0x" + "22" * 20
TEXT = b"\x1b]0;title\x07\n"
REVERT = bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + len(TEXT).to_bytes(32, "big") + TEXT.ljust(32, b"\0")
FRAME = {"type": "CALL", "to": ADDRESS, "error": "execution reverted", "output": "0x" + REVERT.hex()}


def _tree(frame: dict[str, Any]) -> CallTree:
    return CallTree(frame, lambda address: None)


def test_a_reason_has_no_terminal_escapes() -> None:
    tree = _tree({**FRAME, "calls": [FRAME]})
    assert str(tree).count(r"\x1b]0;title\x07\n") == 2
    assert str(tree).replace("\n", "").isprintable()
    error = Reverted("reverted", decode_error(REVERT, ()), "Vault.deposit")
    assert str(error) == r"Vault.deposit: \x1b]0;title\x07\n"
    assert error.reason.encode() == TEXT, "the reason itself is unchanged"


def test_calls_may_nest_as_deep_as_the_evm_allows() -> None:
    frame: dict[str, Any] = {"type": "CALL", "to": ADDRESS, "logs": [{"topics": ["0x" + "11" * 32]}]}
    for _ in range(1024):
        frame = {"type": "CALL", "to": ADDRESS, "calls": [FRAME, frame]}
    tree = _tree(frame)
    assert len(list(tree.walk())) == 2 * 1024 + 1
    receipt = SimpleNamespace(hash="0x11", trace=lambda: tree)
    lines = str(tree).splitlines()
    assert len(lines) == 2 * 1024 + 2
    assert lines[1].startswith("├── ")
    assert lines[2].startswith("└── ")
    assert lines[-1].strip() == f"└── emit log(0x{'11' * 32})"
    assert _last_call_tree(SimpleNamespace(last_receipt=receipt)).startswith(lines[0])
    assert tree._repr_html_().count("<details") == 1025

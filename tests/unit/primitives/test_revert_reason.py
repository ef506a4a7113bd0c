"""Tests revert reasons of contracts."""

from __future__ import annotations

import pytest

from ophion.primitives.revert_reason import revert_reason


def text_revert(text: bytes) -> bytes:
    return bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + len(text).to_bytes(32, "big") + text.ljust(32, b"\0")


REASONS = [
    (text_revert(b"not enough"), "not enough"),
    (bytes.fromhex("4e487b71") + (1).to_bytes(32, "big"), "assert(false)"),
    (bytes.fromhex("4e487b71") + (0x11).to_bytes(32, "big"), "arithmetic underflow or overflow"),
    (bytes.fromhex("4e487b71") + (0x99).to_bytes(32, "big"), "unknown panic code: 0x99"),
    (b"", None),
    (b"abcd", None),
    (bytes.fromhex("08c379a0"), None),
    (bytes.fromhex("08c379a0") + b"\xff" * 64, None),
    (text_revert(b"xyz")[:70], None),
]


@pytest.mark.parametrize(("output", "reason"), REASONS)
def test_revert_reasons_are_read_where_there_is_one(output: bytes, reason: str | None) -> None:
    assert revert_reason(output) == reason

"""Decodes the output of a reverted call to readable text."""

from __future__ import annotations

from typing import Final

_ERROR_SELECTOR: Final = bytes.fromhex("08c379a0")
_PANIC_SELECTOR: Final = bytes.fromhex("4e487b71")
_PANICS: Final = {
    0x00: "generic panic",
    0x01: "assert(false)",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "enum overflow",
    0x22: "invalid encoded storage byte array accessed",
    0x31: "out-of-bounds array access; popping on an empty array",
    0x32: "out-of-bounds access of an array or bytesN",
    0x41: "out of memory",
    0x51: "uninitialized function",
}


def panic_code(output: bytes) -> int | None:
    """Return the code of `Panic(uint256)`. None for other bytes."""
    is_panic = output[:4] == _PANIC_SELECTOR and len(output) == 36
    return int.from_bytes(output[4:], "big") if is_panic else None


def revert_reason(output: bytes) -> str | None:
    """Return the text of `Error(string)` or the meaning of `Panic(uint256)`. None for other bytes."""
    code = panic_code(output)
    if code is not None:
        return _PANICS.get(code, f"unknown panic code: {code:#x}")
    selector, words = output[:4], output[4:]
    if selector != _ERROR_SELECTOR or len(words) < 64:
        return None
    offset = int.from_bytes(words[:32], "big")
    length = int.from_bytes(words[offset : offset + 32], "big") if offset <= len(words) - 32 else len(words)
    text = words[offset + 32 : offset + 32 + length]
    return text.decode("utf-8", "replace") if len(text) == length else None

"""Small contracts as bytecode."""

from __future__ import annotations


def deploying(runtime: bytes) -> bytes:
    """Return init code that deploys this runtime code."""
    size = len(runtime)
    # this init code runs PUSH2 size, DUP1, PUSH1 offset, PUSH1 0, CODECOPY, PUSH1 0, RETURN
    head = b"\x61" + size.to_bytes(2, "big") + b"\x80\x60\x0c\x60\x00\x39\x60\x00\xf3"
    return head + runtime


REVERTING = bytes.fromhex(
    "7f08c379a000000000000000000000000000000000000000000000000000000000600052602060045260036024527f6e6f2100000000000000000000000000000000000000000000000000000000006044526064"
    "6000fd"
)
"""Code that reverts with Error("no!")."""

LOGGING = bytes.fromhex("602a60005260005460206000a160016000550000")
"""Code that logs the word 42 with the content of slot 0 as topic, then writes 1 into the slot."""

STORING = bytes.fromhex("600160005500")
"""Code that writes 1 into slot 0."""

HEAVY = bytes.fromhex("5b600056")
"""Code that jumps to its start until the gas is used up."""

CALLER = bytes.fromhex("3360005260206000f3")
"""Code that returns the caller."""

NUMBER = bytes.fromhex("4360005260206000f3")
"""Code that returns the block number."""

SLOT = bytes.fromhex("60005460005260206000f3")
"""Code that returns the content of slot 0."""


def many_logs(count: int) -> bytes:
    """Return init code that makes `count` empty logs."""
    return bytes.fromhex(f"61{count:04x}5b60006000a0600190038060035700")

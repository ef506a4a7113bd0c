"""The texts of Hardhat's node for failed transactions and calls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.hardhat_failures import call_error

PANIC = bytes.fromhex("4e487b71")
NO = bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + (2).to_bytes(32, "big") + b"no".ljust(32, b"\0")
EXCEPTION = "VM Exception while processing transaction: "


def context(custom: str | None = None) -> RpcContext:
    observer = SimpleNamespace(reason=lambda output: custom)
    return cast(RpcContext, SimpleNamespace(dev=SimpleNamespace(observer=observer)))


@pytest.mark.parametrize(
    ("output", "halt", "message"),
    [
        (NO, "", EXCEPTION + "reverted with reason string 'no'"),
        (PANIC + (1).to_bytes(32, "big"), "", EXCEPTION + "reverted with panic code 0x1 (Assertion error)"),
        (PANIC + (0x99).to_bytes(32, "big"), "", EXCEPTION + "reverted with unknown panic code 0x99"),
        (b"\xde", "", EXCEPTION + "reverted with an unrecognized custom error (return data: 0xde)"),
        (b"", "", "Transaction reverted without a reason string"),
        (b"", "stack underflow (0 <=> 1)", "Transaction reverted without a reason string"),
        (b"", "invalid opcode: INVALID", EXCEPTION + "invalid opcode"),
        (
            b"",
            "max code size exceeded",
            "Transaction reverted: trying to deploy a contract whose code is too large",
        ),
    ],
)
def test_a_failed_call_has_the_text_of_hardhats_node(output: bytes, halt: str, message: str) -> None:
    error = call_error(context(), output, halt)
    assert (error.code, error.message, error.data) == (3, message, "0x" + output.hex())


def test_a_known_custom_error_is_named() -> None:
    error = call_error(context("TooFew(1, 5)"), b"\x12\x34\x56\x78", "")
    assert error.message == EXCEPTION + "reverted with custom error 'TooFew(1, 5)'"


def test_a_call_without_enough_gas_has_a_code_of_its_own() -> None:
    error = call_error(context(), b"", "out of gas")
    assert (error.code, error.message) == (-32000, "Transaction ran out of gas")
    assert error.data == {"message": "Transaction ran out of gas", "data": "0x"}

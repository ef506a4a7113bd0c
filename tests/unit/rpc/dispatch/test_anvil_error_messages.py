"""Tests the errors of Anvil 1.7.1. viem recognises the texts, and repeats a request after some codes."""

from __future__ import annotations

import pytest

from ophion.errors import PoolRejected, RpcError
from ophion.rpc import errors
from ophion.rpc.dispatch.anvil_error_messages import anvil_error
from ophion.rpc.dispatch.error_wording import ErrorWording
from ophion.rpc.dispatch.geth_error_messages import worded


@pytest.mark.parametrize(
    ("reason", "code", "text"),
    [
        ("nonce-too-low", -32003, "nonce too low"),
        ("upfront-cost", -32003, "Insufficient funds for gas * price + value"),
        ("intrinsic-gas", -32000, "intrinsic gas too low"),
        ("gas-limit", -32000, "intrinsic gas too high -- tx.gas_limit > env.block.gas_limit"),
        ("base-fee", -32003, "max fee per gas less than block base fee"),
        ("tip-above-fee", -32003, "max priority fee per gas higher than max fee per gas"),
        ("wrong-chain-id", -32003, "invalid chain id for signer"),
        ("known", -32003, "transaction already imported"),
        ("underpriced", -32003, "replacement transaction underpriced"),
        ("malformed", -32602, "Failed to decode transaction"),
    ],
)
def test_a_refusal_of_the_pool_is_anvils_error(reason: str, code: int, text: str) -> None:
    error = PoolRejected(reason, "in our own words")
    known = errors.as_rpc_error(error)
    assert known is not None
    found = worded(error, known, "eth_sendRawTransaction", ErrorWording.ANVIL)
    assert (found.code, found.message, found.data) == (code, text, known.data)


def test_a_call_with_too_little_gas_is_anvils_error() -> None:
    error = errors.INTRINSIC_GAS()
    for method in ("eth_call", "eth_estimateGas", "eth_createAccessList"):
        found = anvil_error(error, error, method)
        assert found is not None
        assert (found.code, found.message) == (-32000, "intrinsic gas too high -- CallGasCostMoreThanGasLimit")
    sent = anvil_error(error, error, "eth_sendTransaction")
    assert sent is not None
    assert sent.message == "intrinsic gas too low"


def test_other_errors_have_the_words_of_go_ethereum_or_stay() -> None:
    known = errors.INCORRECT_NONCE()
    assert worded(known, known, "eth_call", ErrorWording.ANVIL).message == "nonce too high"
    reverted = RpcError(3, "execution reverted", "0x")
    assert worded(reverted, reverted, "eth_call", ErrorWording.ANVIL) is reverted


def test_an_unknown_method_has_the_text_of_the_specification() -> None:
    unknown = errors.METHOD_NOT_FOUND()
    assert worded(unknown, unknown, "eth_wagmi", ErrorWording.ANVIL).message == "Method not found"


def word(value: int) -> str:
    return value.to_bytes(32, "big").hex()


ERROR = "08c379a0" + word(32) + word(4) + b"boom".ljust(32, b"\0").hex()


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("", "execution reverted"),
        (ERROR, "execution reverted: boom"),
        ("4e487b71" + word(0x11), "execution reverted: panic: arithmetic underflow or overflow (0x11)"),
        ("4e487b71" + word(0x01), "execution reverted: panic: assertion failed (0x01)"),
        ("4e487b71" + word(0x99), "execution reverted: panic: unknown code (0x99)"),
        ("deadbeef", "execution reverted: custom error 0xdeadbeef"),
        ("deadbeef" + word(7), "execution reverted: custom error 0xdeadbeef: " + "\0" * 31 + "\7"),
        ("deadbeefffffff", "execution reverted: custom error 0xdeadbeef: ffffff"),
        ("deadbeef" + "ff" * 5000, "execution reverted: custom error 0xdeadbeef"),
        (b"hello".hex(), "execution reverted: hello"),
        ("de", "execution reverted: custom error bytes 0xde"),
    ],
)
def test_a_revert_has_anvils_text(output: str, text: str) -> None:
    known = errors.reverted(bytes.fromhex(output))
    found = worded(known, known, "eth_call", ErrorWording.ANVIL)
    assert (found.code, found.message, found.data) == (3, text, "0x" + output)


def test_an_error_that_an_artifact_names_keeps_its_text() -> None:
    known = errors.reverted(bytes.fromhex("deadbeef" + word(7)), "TooFew(needed=7)")
    assert worded(known, known, "eth_call", ErrorWording.ANVIL).message == "execution reverted: TooFew(needed=7)"

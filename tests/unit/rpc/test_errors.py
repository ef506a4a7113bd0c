"""Tests the mapping from exceptions to error codes."""

from __future__ import annotations

import pytest

from ophion.chain.queries import UnknownBlock
from ophion.errors import (
    DecodeError,
    InvalidBlock,
    MissingStateError,
    OphionError,
    PoolRejected,
    RpcError,
    StorageError,
)
from ophion.native import exceptions
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import (
    INVALID_REQUEST,
    as_rpc_error,
    invalid_params,
    reverted,
)
from ophion.runtime.thread_pools import DeadlineExceeded, LaneFull
from tests.unit.primitives.test_revert_reason import REASONS

POOL = [
    ("malformed", -32602, "Invalid params"),
    ("type-not-supported", -32602, "Invalid params"),
    ("gas-price-too-low", -32009, "Gas price below configured minimum gas price"),
    ("wrong-chain-id", -32000, "Wrong chainId"),
    ("chain-id-not-supported", -32000, "ChainId not supported"),
    ("chain-id-required", -32000, "ChainId is required"),
    ("invalid-signature", -32002, "Invalid signature"),
    ("intrinsic-gas", -32003, "Intrinsic gas exceeds gas limit"),
    ("gas-limit", -32005, "Transaction gas limit exceeds block gas limit"),
    ("gas-limit-cap", -32005, "why"),
    ("syncing", -32008, "Initial sync is still in progress"),
    ("upfront-cost", -32004, "Upfront cost exceeds account balance"),
    ("nonce-too-low", -32001, "Nonce too low"),
    ("not-authorized", -32007, "Sender account not authorized to send transactions"),
    ("known", -32000, "Known transaction"),
    ("underpriced", -32000, "Replacement transaction underpriced"),
    ("tip-above-fee", -32000, "Max priority fee per gas exceeds max fee per gas"),
    ("fee-cap", -32000, "Transaction fee cap exceeded"),
    ("anything-new", -32000, "why"),
]


@pytest.mark.parametrize(("reason", "code", "message"), POOL)
def test_every_refusal_of_the_pool_has_its_code_and_text(reason: str, code: int, message: str) -> None:
    answer = as_rpc_error(PoolRejected(reason, "why"))
    assert answer is not None
    assert (answer.code, answer.message) == (code, message)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (INVALID_REQUEST(), -32600, "Invalid Request"),
        (UnknownBlock(BlockTag.SAFE), -39001, "Unknown block"),
        (LaneFull("read", 5), -32005, "Too many requests are waiting (read: 5)"),
        (DeadlineExceeded("read"), -32603, "Timeout expired"),
        (MissingStateError("x"), -32000, "World state unavailable"),
        (DecodeError("x"), -32602, "Invalid params"),
        (StorageError("disk full"), -32603, "Internal error"),
        (
            exceptions.StorageError("limit: more than 5 logs match"),
            -32005,
            "Requested range exceeds maximum RPC range limit",
        ),
        (InvalidBlock("state root"), -32000, "Invalid block: state root"),
        (OphionError("so it is"), -32000, "so it is"),
        (exceptions.MissingState("x"), -32000, "World state unavailable"),
    ],
)
def test_expected_errors_have_a_code(error: Exception, code: int, message: str) -> None:
    answer = as_rpc_error(error)
    assert answer is not None
    assert (answer.code, answer.message) == (code, message)


def test_a_bug_has_none() -> None:
    assert as_rpc_error(KeyError("x")) is None


def test_invalid_params_has_one_text_and_its_detail_in_data() -> None:
    error = invalid_params("address: too long")
    assert isinstance(error, RpcError)
    assert (error.message, error.data) == ("Invalid params", "address: too long")


@pytest.mark.parametrize(("output", "reason"), REASONS)
def test_a_revert_shows_its_reason_where_there_is_one(output: bytes, reason: str | None) -> None:
    error = reverted(output)
    assert (error.code, error.data) == (3, "0x" + output.hex())
    assert error.message == ("execution reverted" if reason is None else f"execution reverted: {reason}")

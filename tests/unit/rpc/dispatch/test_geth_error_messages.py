"""Tests error texts that libraries match. The codes stay the same."""

from __future__ import annotations

import pytest

from ophion.errors import PoolRejected, RpcError
from ophion.rpc import errors
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.dispatch.error_wording import ErrorWording
from ophion.rpc.dispatch.geth_error_messages import modern
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.endpoints.services import method_table
from ophion.rpc.schema.registry import HTTP
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface

A, B = DEV_KEYS[:2]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("nonce-too-low", "nonce too low"),
        ("upfront-cost", "insufficient funds"),
        ("intrinsic-gas", "intrinsic gas too low"),
        ("underpriced", "replacement transaction underpriced"),
        ("known", "already known"),
        ("tip-above-fee", "max priority fee per gas higher than max fee per gas"),
        ("base-fee", "max fee per gas less than block base fee"),
        ("nonce-overflow", "nonce has max value"),
    ],
)
def test_a_refusal_of_the_pool_has_other_words_and_the_same_code(reason: str, words: str) -> None:
    error = PoolRejected(reason, "in our own words")
    known = errors.as_rpc_error(error)
    assert known is not None
    said = modern(error, known, "eth_sendRawTransaction")
    assert (said.code, said.data) == (known.code, known.data)
    assert words in said.message


@pytest.mark.parametrize("reason", ["malformed", "syncing", "not-authorized", "something-new"])
def test_other_errors_keep_their_text(reason: str) -> None:
    error = PoolRejected(reason, "in our own words")
    known = errors.as_rpc_error(error)
    assert known is not None
    assert modern(error, known, "eth_sendRawTransaction") is known


def test_calls_have_the_same_words() -> None:
    for fault, words in (
        (errors.UPFRONT_COST, "insufficient funds for gas * price + value"),
        (errors.INCORRECT_NONCE, "nonce too high"),
        (errors.INTRINSIC_GAS, "intrinsic gas too low"),
    ):
        said = modern(fault(), fault("detail"), "eth_call")
        assert (said.code, said.message, said.data) == (fault.code, words, "detail")
    reverted = RpcError(3, "execution reverted", "0x")
    assert modern(reverted, reverted, "eth_call") is reverted


def test_an_unknown_method_is_named() -> None:
    error = errors.METHOD_NOT_FOUND()
    assert modern(error, error, "hardhat_metadata").message == (
        "the method hardhat_metadata does not exist/is not available"
    )


def test_the_error_wording_is_the_configured_one(dev: Interface) -> None:
    limits = DispatchLimits(wording=ErrorWording.MODERN)
    speaker = Dispatcher(method_table(dev.context, ("eth",), HTTP), dev.loop, limits)
    raw = legacy_transaction(B, 0, value=10**24).hex()
    body = b'{"id":1,"method":"eth_sendRawTransaction","params":["0x%b"]}' % raw.encode()
    assert dev.message(body)["error"] == {"code": -32004, "message": "Upfront cost exceeds account balance"}
    assert dev.message(body, speaker)["error"] == {
        "code": -32004, "message": "insufficient funds for gas * price + value",
    }  # fmt: skip
    unknown = b'{"id":1,"method":"no_such","params":[]}'
    for text in (unknown, unknown + b" " * 5_000, unknown + b" " * 70_000):
        assert dev.message(text, speaker)["error"]["message"].startswith("the method no_such does not exist")
    assert dev.message(b"[%b,%b]" % (body, unknown), speaker)[0]["error"]["message"].startswith("insufficient funds")


def test_codes_of_geth_come_with_its_wording_only() -> None:
    refusal = PoolRejected("nonce-too-low", "Nonce too low")
    known = errors.NONCE_TOO_LOW()
    assert (modern(refusal, known, "m").code, modern(refusal, known, "m").message) == (-32001, "nonce too low")
    geth = modern(refusal, known, "m", geth_codes=True)
    assert (geth.code, geth.message) == (-32000, "nonce too low")
    missing = modern(errors.METHOD_NOT_FOUND(), errors.METHOD_NOT_FOUND(), "eth_none", geth_codes=True)
    assert missing.code == -32601

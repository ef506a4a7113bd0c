"""Requests that a node with the preset of Anvil refuses as Anvil does."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ophion.errors import RpcError
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import BLOCK_NOT_FOUND
from ophion.rpc.presets.anvil_refusals import with_refusals
from ophion.rpc.schema.method_table import BoundMethod, MethodTable
from ophion.rpc.schema.wire_types import CanonicalHash
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.fork_requests import forkable

ADDRESS = "0x" + "11" * 20


def context(preset: str, fork: object | None = None) -> RpcContext:
    dev = SimpleNamespace(identity=SimpleNamespace(preset=preset), fork=fork)
    presets = {"is_anvil": preset == "anvil", "is_hardhat": preset == "hardhat"}
    return cast(RpcContext, SimpleNamespace(queries=SimpleNamespace(head_number=6), dev=dev, **presets))


def asked(name: str, params: list[Any], result: Any = "0x0", preset: str = "anvil") -> Any:
    """Ask a method that returns `result`, in both ways in which a dispatcher calls methods."""
    bound = BoundMethod(
        invoke=lambda values, caller: result,
        encode=lambda value: b"",
        may_wait=False,
        name=name,
        decode=list,
        call=lambda values, caller: result,
    )
    table = with_refusals(MethodTable.of({name: bound}), context(preset))
    whole = table[name].invoke(params, None)
    wrapped = table[name]
    assert wrapped.decode is not None
    wrapped.call(wrapped.decode(params), None)
    return whole


@pytest.mark.parametrize("address", ["0x", "", "0x1234", ADDRESS + "00"])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("eth_getBalance", ["@", "latest"]),
        ("anvil_setBalance", ["@", "0x1"]),
        ("hardhat_impersonateAccount", ["@"]),
        ("evm_setAccountNonce", ["@", "0x1"]),
        ("tenderly_setBalance", ["@", "0x1"]),
        ("eth_call", [{"to": ADDRESS}, "latest", {"@": {"balance": "0x1"}}]),
        ("debug_traceCall", [{"to": ADDRESS}, "latest", {"stateOverrides": {"@": {"balance": "0x1"}}}]),
        ("eth_sendTransaction", [{"from": ADDRESS, "to": "@"}]),
        ("eth_call", [{"from": "@", "to": ADDRESS}, "latest"]),
        ("eth_estimateGas", [{"to": ADDRESS, "accessList": [{"address": "@", "storageKeys": []}]}]),
        ("eth_getLogs", [{"address": "@"}]),
        ("eth_newFilter", [{"address": [ADDRESS, "@"]}]),
    ],
)
def test_an_address_of_another_length_is_refused(name: str, params: list[Any], address: str) -> None:
    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {filled(key): filled(member) for key, member in value.items()}
        if isinstance(value, list):
            return [filled(member) for member in value]
        return address if value == "@" else value

    with pytest.raises(RpcError, match="invalid string length") as caught:
        asked(name, filled(params))
    assert caught.value.code == -32602


HASH = "0x" + "22" * 32


@pytest.mark.parametrize(
    ("block", "named"),
    [
        ("0x7", "7"),
        (7, "7"),
        ({"blockNumber": "0x7"}, "7"),
        (HASH, HASH),
        (HASH[2:], HASH),
        (b"\x22" * 32, HASH),
        (CanonicalHash(b"\x22" * 32), HASH),
        ({"blockHash": HASH}, HASH),
        ({"blockHash": HASH, "requireCanonical": True}, HASH),
        ("safe", "safe"),
        (BlockTag.SAFE, "safe"),
    ],
)
def test_an_unknown_block_is_named_as_in_hardhats_error(block: Any, named: str) -> None:
    text = f"^Received invalid block tag {named}. Latest block number is 6$"
    with pytest.raises(RpcError, match=text) as caught:
        asked("eth_getBalance", [ADDRESS, block], result=None, preset="hardhat")
    assert caught.value.code == -32000


@pytest.mark.parametrize(
    ("preset", "text"),
    [
        ("anvil", "BlockOutOfRangeError: block height is 6 but requested was 100"),
        ("hardhat", "Received invalid block tag 100. Latest block number is 6"),
    ],
)
@pytest.mark.parametrize("is_error", [False, True])
def test_a_fork_refuses_an_unknown_block(is_error: bool, preset: str, text: str) -> None:
    """A fork returns encoded results."""

    def missing(values: Any, caller: Any) -> None:
        if is_error:
            raise BLOCK_NOT_FOUND()

    async def scenario() -> None:
        name = "debug_traceCall" if is_error else "eth_call"
        bound = BoundMethod(missing, lambda value: b"null", True, name)
        ctx = context(preset, fork=SimpleNamespace(point=SimpleNamespace(number=3)))
        table = with_refusals(forkable(MethodTable.of({name: bound}), ctx), ctx)
        await table[name].invoke([{"to": ADDRESS}, "0x64"], None)

    with pytest.raises(RpcError, match=text):
        asyncio.run(scenario())


def test_an_unknown_block_of_the_source_node_is_the_error_of_the_preset() -> None:
    def unknown(values: Any, caller: Any) -> None:
        raise RpcError(-32001, "Resource not found")

    bound = BoundMethod(unknown, lambda value: b"", True, "eth_getBalance")
    table = with_refusals(MethodTable.of({"eth_getBalance": bound}), context("hardhat"))
    with pytest.raises(RpcError, match=f"Received invalid block tag {HASH}"):
        table["eth_getBalance"].invoke([ADDRESS, HASH], None)


@pytest.mark.parametrize(
    ("name", "block", "text"),
    [
        ("eth_getBlockTransactionCountByNumber", "0x64", "BlockOutOfRangeError: .* requested was 100"),
        ("eth_getUncleCountByBlockNumber", "0x64", "Resource not found"),
        ("eth_getUncleCountByBlockHash", HASH, "Resource not found"),
        ("debug_traceBlockByNumber", "0x64", "Resource not found"),
        ("debug_traceBlockByHash", HASH, "Resource not found"),
    ],
)
def test_anvil_refuses_an_unknown_block_where_the_others_answer_null(name: str, block: str, text: str) -> None:
    with pytest.raises(RpcError, match=text):
        asked(name, [block], result=None)
    assert asked(name, [block], result=None, preset="hardhat") is None


def test_anvil_refuses_logs_from_a_block_above_the_head() -> None:
    with pytest.raises(RpcError, match="BlockOutOfRangeError: block height is 6 but requested was 7"):
        asked("eth_getLogs", [{"fromBlock": "0x7"}])
    taken: tuple[dict[str, Any], ...] = (
        {"fromBlock": "0x6", "toBlock": "0x64"},
        {"fromBlock": "latest"},
        {"blockHash": HASH},
        {},
        {"fromBlock": []},
    )
    for given in taken:
        assert asked("eth_getLogs", [given]) == "0x0"
    assert asked("eth_getLogs", [{"fromBlock": "0x7"}], preset="hardhat") == "0x0"


def test_an_account_that_does_not_exist_is_null() -> None:
    assert asked("eth_getAccount", [ADDRESS, "0x0"], result=None) is None


def test_half_a_byte_is_named() -> None:
    with pytest.raises(RpcError, match="odd number of digits"):
        asked("eth_getCode", ["0x123", "latest"])


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("eth_getBalance", [ADDRESS, "latest"]),
        ("eth_getBalance", [ADDRESS[2:], "latest"]),
        ("eth_getBalance", []),
        ("eth_call", [{"to": None}, "latest"]),
        ("eth_call", [5]),
        ("eth_getLogs", [{}]),
        ("eth_chainId", ["0x12"]),
        ("debug_traceCall", [{"to": ADDRESS}, "latest", {"stateOverrides": {ADDRESS: {}}}]),
        ("debug_traceCall", [{"to": ADDRESS}, "latest", {"tracerConfig": {"onlyTopCall": True}}]),
    ],
)
def test_other_requests_are_taken(name: str, params: list[Any]) -> None:
    assert asked(name, params) == "0x0"


@pytest.mark.parametrize("block", ["0x64", 100, {"blockNumber": "0x64"}])
def test_the_state_of_a_block_above_the_head_is_an_error(block: Any) -> None:
    with pytest.raises(RpcError, match="BlockOutOfRangeError: block height is 6 but requested was 100") as caught:
        asked("eth_getBalance", [ADDRESS, block], result=None)
    assert caught.value.code == -32602


@pytest.mark.parametrize("block", [{"blockHash": "0x" + "11" * 32}, b"\x11" * 32, "0x5", "latest"])
def test_the_state_of_another_unknown_block_is_an_error(block: Any) -> None:
    async def later() -> None:
        return None

    async def scenario() -> None:
        await asked_later("eth_call", [{"to": ADDRESS}, block])

    async def asked_later(name: str, params: list[Any]) -> None:
        bound = BoundMethod(lambda values, caller: later(), lambda value: b"", True, name)
        await with_refusals(MethodTable.of({name: bound}), context("anvil"))[name].invoke(params, None)

    with pytest.raises(RpcError, match="Resource not found") as caught:
        asyncio.run(scenario())
    assert caught.value.code == -32001

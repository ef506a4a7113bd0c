"""Tests sent transactions, calls and gas estimates."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.contracts import CALLER, HEAVY, NUMBER, REVERTING, SLOT, deploying
from tests.unit.rpc.interface import Interface

RICH = "0x" + DEV_KEYS[1].address.hex()
POOR = "0x" + "99" * 20
CONTRACT = "0x" + "cc" * 20
REVERT_DATA = "0x08c379a0" + f"{32:064x}" + f"{3:064x}" + "6e6f21".ljust(64, "0")


def at(code: bytes) -> dict[str, Any]:
    """Return state overrides that put code at the address that tests call."""
    return {CONTRACT: {"code": "0x" + code.hex()}}


def send(dev: Interface, raw: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = dev.request("eth_sendRawTransaction", "0x" + raw.hex())
    return answer


# --- sending -------------------------------------------------------------------------------------


def test_a_good_transaction_is_pooled_and_its_hash_given(dev: Interface) -> None:
    raw = legacy_transaction(DEV_KEYS[1], 0)
    name = send(dev, raw)["result"]
    assert dev.ask("eth_getTransactionByHash", name)["hash"] == name


def test_each_refusal_has_its_code(dev: Interface) -> None:
    key = DEV_KEYS[1]
    refused = {
        -32009: legacy_transaction(key, 0, gas_price=1),
        -32003: legacy_transaction(key, 0, gas=20_999),
        -32005: legacy_transaction(key, 0, gas=2**53),
        -32004: legacy_transaction(key, 0, value=10**24),
        -32000: legacy_transaction(key, 0, chain_id=5),
    }
    for code, raw in refused.items():
        assert send(dev, raw)["error"]["code"] == code
    dev.run(dev.node.mine(legacy_transaction(key, 0)))
    assert send(dev, legacy_transaction(key, 0))["error"] == {"code": -32001, "message": "Nonce too low"}


def test_known_and_underpriced_transactions_have_different_errors(dev: Interface) -> None:
    key = DEV_KEYS[1]
    raw = legacy_transaction(key, 5, gas_price=10**9)
    assert "result" in send(dev, raw)
    assert send(dev, raw)["error"]["message"] == "Known transaction"
    assert send(dev, legacy_transaction(key, 5, gas_price=10**9 + 1))["error"]["message"] == (
        "Replacement transaction underpriced"
    )
    assert "result" in send(dev, legacy_transaction(key, 5, gas_price=2 * 10**9))


@pytest.mark.parametrize("params", [[], ["0x"], ["0x1"], ["zz"], ["0xc0"], [5], ["0x" + "00" * 9], [None]])
def test_what_is_no_transaction_is_invalid_params(dev: Interface, params: list[Any]) -> None:
    assert dev.error("eth_sendRawTransaction", *params) == (-32602, "Invalid params")


def test_exactly_one_parameter_is_taken(dev: Interface) -> None:
    raw = "0x" + legacy_transaction(DEV_KEYS[1], 0).hex()
    assert dev.error("eth_sendRawTransaction", raw, "more")[0] == -32602


# --- calls ---------------------------------------------------------------------------------------


BASE_FEE = bytes.fromhex("4860005260206000f3")
LOOP = bytes.fromhex("5b600056")
WRITING = bytes.fromhex("600160005560016001556001600255")


@pytest.mark.parametrize("block", ["latest", "pending", "0x0", {"blockNumber": "0x0"}])
def test_a_call_without_a_price_sees_no_base_fee(dev: Interface, block: Any) -> None:
    def seen(*overrides: Any, **members: str) -> int:
        return int(dev.ask("eth_call", {"to": CONTRACT, **members}, block, at(BASE_FEE), *overrides), 16)

    assert seen() == 0
    assert seen({"number": "0x5"}) == 0
    assert seen({"baseFeePerGas": "0x9"}) == 9
    assert seen(gasPrice="0x8") == seen(maxFeePerGas="0x8") == 7


def test_a_free_call_sees_the_base_fee_with_the_preset_of_anvil(dev: Interface) -> None:
    dev.context.queries.chain.has_base_fee_in_free_calls = True
    for block in ("latest", "0x0"):
        assert int(dev.ask("eth_call", {"to": CONTRACT}, block, at(BASE_FEE)), 16) == 7
        assert int(dev.ask("eth_call", {"to": CONTRACT}, block, at(BASE_FEE), {"number": "0x5"}), 16) == 7


def test_a_call_for_another_chain_is_refused(dev: Interface) -> None:
    assert dev.ask("eth_call", {"to": CONTRACT, "chainId": "0x7e2"}, "latest") == "0x"
    assert dev.ask("eth_call", {"to": CONTRACT, "chainId": None}, "latest") == "0x"
    for name in ("eth_call", "eth_estimateGas", "eth_createAccessList"):
        for block in ("latest", "0x0"):
            assert dev.error(name, {"to": CONTRACT, "chainId": "0x1"}, block) == (-32000, "Wrong chainId")
    assert dev.error("eth_call", {"to": CONTRACT, "chainId": "x"})[0] == -32602


def test_a_call_with_blobs_need_not_price_them(dev: Interface) -> None:
    blobs = {"from": RICH, "to": CONTRACT, "blobVersionedHashes": ["0x01" + "00" * 31]}
    hash_of_blob = at(bytes.fromhex("60004960005260206000f3"))
    assert dev.ask("eth_call", blobs, "latest", hash_of_blob) == "0x01" + "00" * 31
    assert dev.ask("eth_estimateGas", blobs) == "0x5208"
    assert "accessList" in dev.ask("eth_createAccessList", blobs)


def test_an_estimate_ends_where_a_transaction_ends(dev: Interface) -> None:
    """The gas limit of EIP-7825 and the given gas bound an estimate. Given gas below the minimum of a transaction is
    ignored.
    """
    code, message = dev.error("eth_estimateGas", {"to": CONTRACT}, "latest", at(LOOP))
    assert code == -32000
    assert "16777216 gas do not suffice, which is the maximum of a transaction (EIP-7825)" in message
    code, message = dev.error("eth_estimateGas", {"to": CONTRACT, "gas": "0x10000"}, "latest", at(LOOP))
    assert "65536 gas do not suffice, which is the given gas limit" in message
    assert dev.ask("eth_estimateGas", {"to": CONTRACT, "gas": "0x1"}) == "0x5208"
    needed = int(dev.ask("eth_estimateGas", {"to": CONTRACT}, "latest", at(WRITING)), 16)
    assert int(dev.ask("eth_estimateGas", {"to": CONTRACT, "gas": hex(needed)}, "latest", at(WRITING)), 16) <= needed
    assert dev.error("eth_estimateGas", {"to": CONTRACT, "gas": hex(needed // 2)}, "latest", at(WRITING))[0] == -32000


def test_an_estimate_of_a_development_chain_ends_at_the_gas_limit(dev: Interface) -> None:
    chain = dev.context.queries.chain
    chain.is_relaxed = True
    code, message = dev.error("eth_estimateGas", {"to": CONTRACT}, "latest", at(LOOP))
    assert code == -32000
    assert "16777216" not in message
    chain.has_gas_cap = True
    assert "16777216 gas do not suffice" in dev.error("eth_estimateGas", {"to": CONTRACT}, "latest", at(LOOP))[1]


def test_a_call_returns_what_the_contract_returns(dev: Interface) -> None:
    caller = dev.ask("eth_call", {"to": CONTRACT, "from": RICH}, "latest", at(CALLER))
    assert caller == "0x" + "00" * 12 + RICH[2:]
    assert dev.ask("eth_call", {"to": CONTRACT}, "latest", at(CALLER)) == "0x" + "00" * 32
    assert dev.ask("eth_call", {"to": POOR}) == "0x"
    assert dev.ask("eth_call", {"to": POOR, "value": "0x1"}) == "0x"


def test_a_call_without_a_recipient_creates_a_contract(dev: Interface) -> None:
    assert dev.ask("eth_call", {"input": "0x" + deploying(CALLER).hex()}) == "0x" + CALLER.hex()


def test_a_revert_is_error_3_with_its_reason_and_data(dev: Interface) -> None:
    answer = dev.request("eth_call", {"to": CONTRACT}, "latest", at(REVERTING))
    assert answer["error"] == {"code": 3, "message": "execution reverted: no!", "data": REVERT_DATA}


def test_other_failures_name_what_happened(dev: Interface) -> None:
    assert dev.error("eth_call", {"to": CONTRACT}, "latest", at(b"\xfe")) == (-32000, "invalid opcode")
    code, message = dev.error("eth_call", {"to": CONTRACT, "gas": "0x186a0"}, "latest", at(HEAVY))
    assert (code, message) == (-32000, "out of gas")


def test_a_named_caller_must_be_able_to_pay(dev: Interface) -> None:
    upfront = (-32004, "Upfront cost exceeds account balance")
    assert dev.error("eth_call", {"from": POOR, "to": RICH, "value": "0x1"}) == upfront
    assert dev.error("eth_call", {"from": POOR, "to": RICH, "gasPrice": "0x3b9aca00"}) == upfront
    assert dev.ask("eth_call", {"from": POOR, "to": RICH, "value": "0x1", "strict": False}) == "0x"
    rich = {POOR: {"balance": "0xde0b6b3a7640000"}}
    assert dev.ask("eth_call", {"from": POOR, "to": RICH, "value": "0x1"}, "latest", rich) == "0x"
    assert dev.error("eth_call", {"from": RICH, "to": POOR, "gas": "0x0"}) == (
        -32003, "Intrinsic gas exceeds gas limit",
    )  # fmt: skip


def test_a_price_below_the_base_fee_and_an_impossible_nonce_have_their_own_errors(dev: Interface) -> None:
    dear = {"baseFeePerGas": "0x5"}
    below = (-32009, "Gas price below current base fee")
    assert dev.error("eth_call", {"from": RICH, "to": POOR, "gasPrice": "0x4"}, "latest", None, dear) == below
    assert dev.ask("eth_call", {"from": RICH, "to": POOR, "gasPrice": "0x5"}, "latest", None, dear) == "0x"
    assert dev.ask("eth_call", {"to": POOR}, "latest", None, dear) == "0x", "nobody names a price"
    assert dev.error("eth_call", {"to": POOR, "nonce": hex(2**64 - 1)})[0] == -32000


def test_a_precompiled_contract_can_be_elsewhere_for_a_call(dev: Interface) -> None:
    """A state override can move a precompiled contract, in every method with state overrides (json-rpc.md 7.1)."""
    identity, elsewhere = "0x" + "00" * 19 + "04", CONTRACT
    moved = {identity: {"movePrecompileToAddress": elsewhere}}
    there, here = {"to": elsewhere, "data": "0x1234"}, {"to": identity, "data": "0x1234"}
    assert dev.ask("eth_call", there, "latest", moved) == "0x1234"
    assert dev.ask("eth_call", here, "latest", moved) == "0x"
    assert dev.ask("eth_call", here, "latest", {identity: {"code": "0x60ff60005360016000f3"}}) == "0xff"
    assert (dev.ask("eth_call", here, "latest"), dev.ask("eth_call", there, "latest")) == ("0x1234", "0x")
    assert int(dev.ask("eth_estimateGas", there, "latest", moved), 16) > int(dev.ask("eth_estimateGas", there), 16)
    assert "error" not in dev.ask("eth_createAccessList", there, "latest", moved)
    options = {"tracer": "callTracer", "stateOverrides": moved}
    assert dev.ask("debug_traceCall", there, "latest", options)["output"] == "0x1234"
    for nonsense in (
        {elsewhere: {"movePrecompileToAddress": identity}},
        {**moved, elsewhere: {"balance": "0x1"}},
        {identity: {"movePrecompileToAddress": identity}},
    ):
        assert dev.error("eth_call", there, "latest", nonsense)[0] == -32602
        assert dev.error("eth_estimateGas", there, "latest", nonsense)[0] == -32602
        assert dev.error("eth_createAccessList", there, "latest", nonsense)[0] == -32602
        assert dev.error("debug_traceCall", there, "latest", {"stateOverrides": nonsense})[0] == -32602


def test_overrides_replace_state_and_block(dev: Interface) -> None:
    seven = {CONTRACT: {"code": "0x" + SLOT.hex(), "stateDiff": {"0x0": "0x7"}}}
    assert dev.ask("eth_call", {"to": CONTRACT}, "latest", seven) == "0x" + f"{7:064x}"
    number = dev.ask("eth_call", {"to": CONTRACT}, "latest", at(NUMBER), {"number": "0x1234"})
    assert number == "0x" + f"{0x1234:064x}"


def test_a_call_sees_the_block_it_is_made_at(dev: Interface) -> None:
    for _ in range(3):
        dev.run(dev.node.seal())
    for block, number in (("0x1", 1), ("latest", 3), ("earliest", 0), ("pending", 4)):
        assert dev.ask("eth_call", {"to": CONTRACT}, block, at(NUMBER)) == "0x" + f"{number:064x}"
    assert dev.ask("eth_call", {"to": CONTRACT}, "0x99", at(NUMBER)) is None


@pytest.mark.parametrize("params", [[], ["latest"], ["0x8"], [{}, {}], [{"to": "x"}], [{}, "latest", 5]])
def test_bad_call_parameters_are_refused(dev: Interface, params: list[Any]) -> None:
    assert dev.error("eth_call", *params)[0] == -32602


def test_calls_change_nothing(dev: Interface) -> None:
    before = dev.ask("eth_getBlockByNumber", "latest")
    dev.ask("eth_call", {"from": RICH, "to": POOR, "value": "0x5"})
    assert dev.ask("eth_getBalance", POOR) == "0x0"
    assert dev.ask("eth_getBlockByNumber", "latest") == before


def at_once(dev: Interface, body: bytes) -> bool:
    async def handle() -> bool:
        return isinstance(dev.dispatcher.handle(body), bytes)

    return dev.run(handle())


def test_a_plain_call_is_answered_at_once(dev: Interface) -> None:
    body = b'{"id":1,"method":"eth_call","params":[{"to":"0x%b","data":"0x"},"latest"]}' % (b"99" * 20)
    assert at_once(dev, body)


def test_a_light_call_with_further_members_is_answered_at_once_the_second_time(dev: Interface) -> None:
    body = b'{"id":1,"method":"eth_call","params":[{"to":"0x%b","value":"0x0"},"latest"]}' % (b"99" * 20)
    dev.message(body)
    assert at_once(dev, body)
    assert dev.context.light_calls.knows(bytes.fromhex("99" * 20), b"")


def test_a_call_that_was_heavy_is_not_tried_on_the_loop_again(dev: Interface) -> None:
    endless = deploying(bytes.fromhex("5b5f56"))
    _, (sent,) = dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[1], 0, to=None, gas=200_000, data=endless)))
    contract = dev.ask("eth_getTransactionReceipt", "0x" + sent.hex())["contractAddress"]
    call = {"to": contract, "gas": hex(30_000_000)}
    tried, to = dev.context.light_calls.tried, bytes.fromhex(contract[2:])
    assert not tried.is_heavy(to, b"")
    assert dev.error("eth_call", call) == (-32000, "out of gas")
    assert tried.is_heavy(to, b"")


# --- estimates and access lists ------------------------------------------------------------------


def test_estimates(dev: Interface) -> None:
    assert dev.ask("eth_estimateGas", {"from": RICH, "to": POOR, "value": "0x1"}) == "0x5208"
    assert dev.ask("eth_estimateGas", {"to": POOR, "gas": "0x1"}) == "0x5208"
    assert dev.ask("eth_estimateGas", {"from": RICH, "to": POOR}, "latest") == "0x5208"
    assert int(dev.ask("eth_estimateGas", {}), 16) > 53_000
    assert dev.error("eth_estimateGas", {"from": POOR, "to": RICH, "value": "0x1"})[0] == -32004
    assert dev.error("eth_estimateGas", {"to": POOR}, "0x99") == (-32000, "Block not found")
    assert dev.error("eth_estimateGas", {"to": POOR}, "-1")[0] == -32602
    answer = dev.request("eth_estimateGas", {"to": CONTRACT}, "latest", at(REVERTING))
    assert answer["error"] == {"code": 3, "message": "execution reverted: no!", "data": REVERT_DATA}
    assert dev.error("eth_estimateGas", {"to": CONTRACT}, "latest", at(b"\xfe")) == (
        -32000,
        "Transaction processing could not be completed due to an exception (invalid opcode)",
    )


def test_an_estimate_is_enough(dev: Interface) -> None:
    data = deploying(CALLER)
    gas = int(dev.ask("eth_estimateGas", {"from": RICH, "data": "0x" + data.hex()}), 16)
    _, (sent,) = dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[1], 0, to=None, gas=gas, data=data)))
    receipt = dev.ask("eth_getTransactionReceipt", "0x" + sent.hex())
    assert receipt["status"] == "0x1"
    assert int(receipt["gasUsed"], 16) <= gas < int(receipt["gasUsed"], 16) * 1.1


def test_an_access_list_names_touched_storage_even_of_a_failing_call(dev: Interface) -> None:
    found = dev.ask("eth_createAccessList", {"from": RICH, "to": CONTRACT}, "latest", at(SLOT))
    assert found["accessList"] == [{"address": CONTRACT, "storageKeys": ["0x" + "00" * 32]}]
    assert "error" not in found
    failing = dev.ask("eth_createAccessList", {"to": CONTRACT}, "latest", at(REVERTING))
    assert failing["error"] == "execution reverted: no!"
    assert dev.ask("eth_createAccessList", {"from": RICH, "to": POOR, "value": "0xa"}, "pending") == {
        "accessList": [], "gasUsed": "0x5208",
    }  # fmt: skip


def test_transactions_of_one_turn_are_admitted_together(dev: Interface) -> None:
    async def story() -> list[bytes]:
        loop = asyncio.get_running_loop()
        answers = []
        for nonce in range(5):
            raw = legacy_transaction(DEV_KEYS[1], nonce).hex().encode()
            reply = dev.dispatcher.handle(
                b'{"id":%d,"method":"eth_sendRawTransaction","params":["0x%b"]}' % (nonce, raw)
            )
            answer = loop.create_future()
            reply.deliver = answer.set_result  # type: ignore[union-attr]
            answers.append(answer)
        return list(await asyncio.gather(*answers))

    assert all(b'"result":"0x' in answer for answer in dev.run(story()))
    assert dev.ask("txpool_status") == {"pending": "0x5", "queued": "0x0"}

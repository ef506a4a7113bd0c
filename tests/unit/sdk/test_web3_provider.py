"""Tests web3.py on a chain without a socket."""

from __future__ import annotations

import asyncio
import json

import pytest

from ophion import Chain
from tests.unit.sdk.contracts import TOKEN

web3 = pytest.importorskip("web3", reason="web3.py is optional")
ARTIFACT = json.loads(TOKEN.read_text())


def test_a_contract_through_web3() -> None:
    with Chain() as chain:
        w3 = chain.web3
        assert w3.is_connected()
        factory = w3.eth.contract(abi=ARTIFACT["abi"], bytecode=ARTIFACT["bytecode"])
        receipt = w3.eth.wait_for_transaction_receipt(factory.constructor("Coin", 1000).transact())
        token = w3.eth.contract(address=receipt["contractAddress"], abi=ARTIFACT["abi"])
        bob = chain.accounts[1]
        sent = w3.eth.wait_for_transaction_receipt(token.functions.transfer(bob, 5).transact())
        assert sent["status"] == 1
        assert token.functions.balanceOf(bob).call() == 5
        assert token.events.Transfer().process_receipt(sent)[0]["args"]["value"] == 5
        with pytest.raises(web3.exceptions.ContractLogicError):
            token.functions.transfer(bob, 5000).transact()
        with pytest.raises(web3.exceptions.ContractCustomError):
            token.functions.transfer(bob, 5000).call()
        assert chain.contract(token.address, ARTIFACT["abi"]).balanceOf(bob) == 5


def test_fees_and_errors_are_those_of_all_middleware() -> None:
    def story(chain: Chain, w3: web3.Web3) -> list[object]:
        alice, bob = w3.eth.accounts[:2]
        w3.eth.default_account = alice
        seen: list[object] = []
        for given in (
            {"gasPrice": 3 * 10**9},
            {"maxPriorityFeePerGas": 2 * 10**9},
            {"maxPriorityFeePerGas": 10**9, "maxFeePerGas": 9 * 10**9},
            {"gas": 50_000},
        ):
            sent = w3.eth.send_transaction({"to": bob, "value": 5, **given})
            found = w3.eth.get_transaction(sent)
            seen.append((found["type"], found.get("maxFeePerGas"), found["gasPrice"]))
        for wrong in (
            {"gasPrice": 10**9, "maxFeePerGas": 10**9},
            {"maxFeePerGas": 10**9},
            {"maxPriorityFeePerGas": 2, "maxFeePerGas": 1},
        ):
            with pytest.raises((web3.exceptions.Web3Exception, ValueError)) as caught:
                w3.eth.send_transaction({"to": bob, "value": 5, **wrong})
            seen.append(type(caught.value))
        w3.eth.set_gas_price_strategy(lambda *_: 7 * 10**9)
        seen.append(w3.eth.get_transaction(w3.eth.send_transaction({"to": bob, "value": 5}))["gasPrice"])
        return seen

    with Chain() as first, Chain() as second:
        from ophion.sdk.web3_provider import ChainProvider

        assert story(first, first.web3) == story(second, web3.Web3(ChainProvider(second)))


def test_asynchronous_web3() -> None:
    async def story(chain: Chain) -> int:
        w3 = chain.async_web3
        assert await w3.is_connected()
        value = {"to": chain.accounts[1].address, "value": 5}
        await w3.eth.wait_for_transaction_receipt(await w3.eth.send_transaction(value))
        await asyncio.gather(*(w3.eth.get_block("latest") for _ in range(5)))
        return int(await w3.eth.block_number)

    with Chain() as chain:
        assert asyncio.run(story(chain)) == 1

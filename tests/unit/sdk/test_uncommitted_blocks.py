"""A chain in memory writes its blocks to the database later. The fast path gives the same chain as the slow path."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from ophion import Chain, ChainError, Reverted
from ophion.sdk.errors import TransactionRefused
from ophion.sdk.uncommitted_blocks import MAX_BLOCKS
from tests.unit.sdk.contracts import TOKEN

# this contract returns BLOCKHASH of the number in the call data
BLOCKHASH_CODE = "0x5f35405f5260205ff3"
# this contract stores BLOCKHASH(number - 1 - call data) in slot 0
STORE_BLOCKHASH_CODE = "0x5f356001014303405f55"


def _history(chain: Chain, settle: Callable[[Chain], object]) -> list[Any]:
    """Run the same transactions, and call `settle` after each of them."""
    alice, bob = chain.accounts[:2]
    seen: list[Any] = []
    token = chain.deploy(TOKEN, "Coin", 1000)
    settle(chain)
    for amount in (1, 2, 3):
        receipt = token.transfer(bob, amount)
        settle(chain)
        seen.append((receipt.fields, str(receipt.events), receipt.hash))
    with pytest.raises(Reverted) as caught:
        token.transfer(alice, 10**6, sender=bob)
    settle(chain)
    assert caught.value.receipt is not None
    seen.append((str(caught.value), caught.value.receipt.fields))
    with chain.snapshot():
        alice.transfer(bob, 7)
        settle(chain)
        seen.append(chain.balance(bob))
    chain.time += 100
    alice.transfer(bob, 8)
    settle(chain)
    chain.impersonate("0x" + "77" * 20)
    chain.set_balance("0x" + "77" * 20, 10**18)
    chain.send(bob, value=5, sender="0x" + "77" * 20)
    settle(chain)
    seen.append((chain.balance(bob), chain.nonce(alice), chain.block_number, chain.time))
    seen.append([chain.block(number) for number in range(chain.block_number + 1)])
    return seen


def test_both_paths_make_the_same_chain() -> None:
    with Chain() as fast, Chain() as slow:
        slow.node._is_on_disk = True  # make the chain look like a chain on disk, which has no fast path
        expected = _history(slow, lambda chain: None)
        assert _history(fast, lambda chain: None) == expected
    with Chain() as committed:
        assert _history(committed, lambda chain: chain.node.commit_blocks()) == expected
    with Chain() as asked:
        assert _history(asked, lambda chain: chain.rpc("eth_blockNumber")) == expected


def test_blocks_are_not_written_before_they_are_read() -> None:
    with Chain() as chain:
        alice, bob = chain.accounts[:2]
        receipt = alice.transfer(bob, 1)
        assert chain.node.core.chain.head.number == 0
        assert (chain.block_number, chain.nonce(alice), receipt.block_number) == (1, 1, 1)
        assert chain.balance(bob, block=0) + 1 == chain.balance(bob, block=1) == chain.balance(bob)
        assert chain.rpc("eth_blockNumber") == "0x1"
        assert chain.node.core.chain.head.number == 1
        alice.transfer(bob, 1)
        assert chain.rpc("eth_getTransactionReceipt", receipt.hash) == receipt.fields
        for _ in range(MAX_BLOCKS + 1):
            alice.transfer(bob, 1)
        assert chain.node.core.chain.head.number == 2 + MAX_BLOCKS
        assert chain.block_number == 3 + MAX_BLOCKS


def test_reverts_reach_every_saved_state() -> None:
    with Chain() as chain:
        alice, bob = chain.accounts[:2]
        start = bob.balance
        saved = []
        for number in range(6):
            saved.append(chain.save())
            alice.transfer(bob, 1)
            if number % 2:
                chain.rpc("eth_blockNumber")
        for number in (5, 4, 2, 0):
            chain.restore(saved[number])
            assert (chain.block_number, bob.balance, alice.nonce) == (number, start + number, number)
            assert chain.rpc("eth_blockNumber") == hex(number)
            with chain.snapshot():
                alice.transfer(bob, 100)
            assert bob.balance == start + number
        with pytest.raises(ChainError, match="no saved state"):
            chain.restore(saved[0])


def test_settings_are_restored_with_the_blocks() -> None:
    with Chain() as chain:
        alice, bob = chain.accounts[:2]
        chain.time = 1_800_000_000
        before = chain.time
        with chain.snapshot():
            alice.transfer(bob, 1)
            assert chain.block()["timestamp"] == hex(before)
            chain.time += 500
            alice.transfer(bob, 1)
        assert chain.time == before
        with chain.snapshot():
            alice.transfer(bob, 1)
            assert chain.time == before + 1
        assert chain.time == before
        alice.transfer(bob, 1)
        assert chain.block()["timestamp"] == hex(before)


def test_blockhash_finds_blocks_that_are_not_written() -> None:
    with Chain() as chain:
        alice = chain.accounts[0]
        reader, storing = "0x" + "aa" * 20, "0x" + "bb" * 20
        chain.set_code(reader, BLOCKHASH_CODE)
        chain.mine(300)
        for _ in range(5):
            alice.transfer(alice, 0)
        number = chain.block_number
        found = {at: chain.call(reader, at.to_bytes(32, "big")) for at in range(number - 256, number)}
        assert chain.node.core.chain.head.number == 300
        wanted = {at: bytes.fromhex(chain.rpc("eth_getBlockByNumber", hex(at), False)["hash"][2:]) for at in found}
        assert found == wanted
        assert chain.call(reader, (number - 257).to_bytes(32, "big")) == bytes(32)
        chain.set_code(storing, STORE_BLOCKHASH_CODE)
        for back in (0, 1, 4, 250):
            chain.send(storing, back.to_bytes(32, "big"))
            stored = chain.storage(storing, 0)
            at = chain.block_number - 1 - back
            assert stored == bytes.fromhex(chain.rpc("eth_getBlockByNumber", hex(at), False)["hash"][2:])


def test_an_invalid_transaction_is_explained() -> None:
    with Chain() as chain:
        alice, bob = chain.accounts[:2]
        alice.transfer(bob, 1)
        with pytest.raises(TransactionRefused, match=r"(?i)nonce"):
            alice.transfer(bob, 1, nonce=0)
        with pytest.raises(TransactionRefused, match=r"(?i)balance|funds"):
            alice.transfer(bob, 10**30)
        with pytest.raises(TransactionRefused, match="no key"):
            chain.send(bob, value=1, sender="0x" + "99" * 20)
        assert chain.block_number == 1
        later = alice.transfer(bob, 2, nonce=2)
        assert later.is_pending
        alice.transfer(bob, 3)
        assert not later.is_pending
        assert alice.nonce == 3


def test_threads_share_the_blocks() -> None:
    with Chain() as chain:
        accounts = chain.accounts
        failures: list[BaseException] = []

        def work(place: int) -> None:
            try:
                for step in range(20):
                    accounts[place].transfer(accounts[9], 1)
                    if step % 7 == place:
                        chain.rpc("eth_getBalance", accounts[9], "latest")
            except BaseException as error:  # noqa: BLE001  # the code below reports the error
                failures.append(error)

        threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
        start = accounts[9].balance
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert accounts[9].balance == start + 80
        assert chain.block_number == 80
        assert chain.rpc("eth_blockNumber") == hex(80)


def test_a_served_chain_writes_each_block() -> None:
    with Chain() as chain:
        alice, bob = chain.accounts[:2]
        alice.transfer(bob, 1)
        with chain.serve() as server, Chain.connect(server.url) as other:
            assert other.block_number == 1
            alice.transfer(bob, 1)
            assert other.block_number == 2
        alice.transfer(bob, 1)
        assert chain.block_number == 3

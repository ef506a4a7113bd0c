"""A chain without blocks gives the same results as a chain with blocks."""

from __future__ import annotations

import pytest

from ophion import Chain, ChainError, Reverted
from ophion.sdk.backend import CallSpec
from ophion.sdk.sandbox import without_blocks
from tests.unit.sdk.contracts import TOKEN


@pytest.mark.parametrize("is_branch", [False, True])
def test_effects_are_kept_and_undone(is_branch: bool) -> None:
    with Chain() as base:
        deployed = base.deploy(TOKEN, "Coin", 1000)
        chain = base.fork_at() if is_branch else base
        token = chain.attach(deployed)
        alice, bob = chain.accounts[:2]
        token.transfer(bob, 5)
        number, nonce = chain.block_number, chain.nonce(alice)
        with without_blocks(chain):
            assert token.balanceOf(bob) == 5
            token.transfer(bob, 7)
            assert token.balanceOf(bob) == 12
            assert token.transfer.call(bob, 1) is True
            assert token.balanceOf(bob) == 12
            with chain.snapshot():
                token.transfer(bob, 100)
                with chain.snapshot():
                    token.transfer(bob, 100)
                    assert token.balanceOf(bob) == 212
                assert token.balanceOf(bob) == 112
            assert token.balanceOf(bob) == 12
            with pytest.raises(Reverted) as caught:
                token.transfer(alice, 10**6, sender=bob)
            assert caught.value.name == "InsufficientBalance"
            other = chain.deploy(TOKEN, "Other", 9)
            assert other.totalSupply() == 9
            assert chain.code(other) == chain.code(token) != b""
            before = bob.balance
            alice.transfer(bob, 10**18)
            assert bob.balance == before + 10**18
            assert chain.nonce(alice) == nonce + 3
            assert chain.block_number == number
            for unsupported in (
                chain.mine,
                chain.block,
                lambda: chain.set_balance(bob, 1),
                lambda: chain.call(token, block=0),
            ):
                with pytest.raises(ChainError, match="without blocks"):
                    unsupported()
        assert (token.balanceOf(bob), chain.block_number, chain.nonce(alice)) == (5, number, nonce)


def test_gas_and_results_equal_those_of_transactions() -> None:
    def story(chain: Chain) -> list[tuple[bool | None, int, bytes]]:
        token = chain.contract(address, abi)
        alice, bob = chain.accounts[:2]
        sent = []
        for call, sender in (
            (token.transfer.encode(bob, 5), alice),
            (token.transfer.encode(bob, 0), alice),
            (token.approve.encode(bob, 50), alice),
            (token.transferFrom.encode(alice, bob, 20), bob),
            (token.transfer.encode(bob, 10**9), alice),
        ):
            done = chain.backend.send(CallSpec(sender.raw, token.raw, call))
            sent.append((done.succeeded, done.gas_used, done.output))
        return sent

    with Chain() as chain:
        deployed = chain.deploy(TOKEN, "Coin", 1000)
        address, abi = deployed.address, deployed.abi
        with without_blocks(chain):
            first = story(chain)
        assert first == story(chain)

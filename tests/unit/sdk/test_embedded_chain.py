"""Tests chains that continue another chain from one of its blocks."""

from __future__ import annotations

import pytest

from ophion import Chain, ChainError, Reverted
from tests.unit.sdk.contracts import TOKEN


def test_a_fork_continues_the_chain_of_a_node(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with Chain(chain_id=77) as source:
        token = source.deploy(TOKEN, "Coin", 1000)
        bob = source.accounts[1]
        token.transfer(bob, 5)
        token.transfer(bob, 6)
        with source.serve() as server:
            with Chain(fork=server.url) as fork:
                local = fork.attach(token)
                assert (fork.chain_id, fork.block_number) == (77, 3)
                assert local.balanceOf(bob) == 11
                receipt = local.transfer(bob, 100)
                assert receipt.events.one("Transfer").value == 100
                assert "Token.transfer" in str(receipt.trace())
                assert (local.balanceOf(bob), token.balanceOf(bob)) == (111, 11)
                with pytest.raises(Reverted) as caught:
                    local.transfer(bob, 10**6)
                assert caught.value.name == "InsufficientBalance"
                with fork.snapshot():
                    fork.set_balance(bob, 1)
                    assert bob.balance != 1
                assert fork.rpc("eth_getBlockByNumber", "0x2", False)["hash"] == source.block(2)["hash"]
                assert local.transfer.estimate_gas(bob, 1) > 21_000
            for _ in range(2):
                with Chain(fork=server.url, block=2) as early:
                    assert early.block_number == 2
                    assert early.attach(token).balanceOf(bob) == 5
                    early.attach(token).transfer(bob, 1)
                    assert early.attach(token).balanceOf(bob) == 6


def test_a_fork_has_no_genesis_of_its_own() -> None:
    with pytest.raises(ChainError, match="leave out `path` and `genesis`"):
        Chain(fork="http://127.0.0.1:1", genesis={})

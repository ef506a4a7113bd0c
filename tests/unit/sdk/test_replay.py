"""Tests the replay of a mined transaction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ophion import Chain, ChainError
from ophion.sdk.contract import Contract
from tests.unit.sdk.contracts import TOKEN


@pytest.fixture
def token() -> Iterator[Contract]:
    with Chain() as chain:
        yield chain.deploy(TOKEN, "Coin", 1000)


def test_the_same_conditions_give_the_same_run(token: Contract) -> None:
    chain, bob = token.chain, token.chain.accounts[1]
    with chain.paused_mining():
        token.transfer(bob, 300)
        second = token.transfer(bob, 600)
    assert chain.replay(second).differences == []
    assert chain.replay(second.hash).chain.attach(token).balanceOf(bob) == 900


def test_other_conditions_show_differences(token: Contract) -> None:
    chain, bob = token.chain, token.chain.accounts[1]
    receipt = token.transfer(bob, 5)
    starved = chain.replay(receipt, gas=30_000)
    assert starved.after.error is not None
    assert starved.differences
    stopped = chain.replay(receipt, code={token: b"\x60\x00\x60\x00\xfd"})
    assert stopped.after.error is not None
    assert stopped.before.error is None
    assert token.balanceOf(bob) == 5
    poorer = chain.replay(receipt, storage={token: {1: 7}})
    assert poorer.chain.attach(token).totalSupply() == 7


def test_an_unknown_transaction_is_an_error(token: Contract) -> None:
    with pytest.raises(ChainError, match="There is no mined transaction"):
        token.chain.replay("0x" + "11" * 32)

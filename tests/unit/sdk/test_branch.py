"""Tests views and branches of a chain at any block."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ophion import Chain, ChainError, Reverted
from ophion.sdk.contract import Contract
from ophion.sdk.errors import TransactionRefused
from tests.unit.sdk.contracts import TOKEN


@pytest.fixture
def token() -> Iterator[Contract]:
    with Chain() as chain:
        made = chain.deploy(TOKEN, "Coin", 1000)
        for _ in range(3):
            made.transfer(chain.accounts[1], 5)
        yield made


def test_a_view_shows_the_past(token: Contract) -> None:
    chain, bob = token.chain, token.chain.accounts[1]
    past = chain.at(2)
    assert past.block_number == 2
    assert past.attach(token).balanceOf(bob) == 5
    assert token.balanceOf(bob) == 15
    for change in (past.mine, lambda: past.attach(token).transfer(bob, 1), lambda: past.set_balance(bob, 1)):
        with pytest.raises(ChainError, match="read-only"):
            change()
    with pytest.raises(ChainError, match="There is no block 9"):
        chain.at(9)


def test_blocks_and_events_of_a_view_end_at_its_block(token: Contract) -> None:
    chain = token.chain
    past = chain.at(2)
    assert past.block()["number"] == past.block("pending")["number"] == "0x2"
    assert past.block(1)["number"] == "0x1"
    assert len(past.attach(token).events("Transfer")) == 2
    assert len(past.attach(token).events("Transfer", 0, 4)) == 2
    with pytest.raises(ChainError, match="There is no block 3; the latest is 2"):
        past.block(3)
    with pytest.raises(ChainError, match="has no block 'finalized'"):
        past.attach(token).totalSupply(block="finalized")


def test_a_branch_has_blocks_of_its_own(token: Contract) -> None:
    chain, bob = token.chain, token.chain.accounts[1]
    branch = chain.fork_at(2)
    other = branch.attach(token)
    receipt = other.transfer(bob, 100)
    assert receipt.events.one("Transfer").value == 100
    assert receipt.trace().function == "transfer"
    assert (other.balanceOf(bob), branch.block_number) == (105, 3)
    assert (token.balanceOf(bob), chain.block_number) == (15, 4)
    with pytest.raises(Reverted) as caught:
        other.transfer(bob, 5000)
    assert caught.value.name == "InsufficientBalance"
    token.transfer(bob, 1)
    assert other.balanceOf(bob) == 105
    assert other.balanceOf(bob, block=2) == 5
    assert other.balanceOf(bob, block=3) == 105


def test_a_branch_can_be_edited_and_reverted(token: Contract) -> None:
    chain = token.chain
    branch = chain.fork_at()
    account = "0x" + "66" * 20
    with branch.snapshot():
        branch.set_balance(account, 10**18)
        branch.impersonate(account).transfer(chain.accounts[0], 5)
        branch.time += 1000
        branch.mine(2, interval=7)
        assert branch.block_number == chain.block_number + 3
        branch.set_storage(token, 1, 7)
        assert branch.attach(token).totalSupply() == 7
    assert branch.block_number == chain.block_number
    assert branch.balance(account) == 0 == chain.balance(account)
    with pytest.raises(TransactionRefused, match="not an account of this branch"):
        branch.send(chain.accounts[0], sender="0x" + "77" * 20)
    with pytest.raises(TransactionRefused, match="invalid"):
        branch.send(chain.accounts[0], nonce=999)


def test_a_branch_deploys_contracts(token: Contract) -> None:
    branch = token.chain.fork_at(0)
    assert branch.code(token) == b""
    made = branch.deploy(TOKEN, "Other", 5)
    assert made.name() == "Other"
    assert token.name() == "Coin"


def test_a_thousand_branches(token: Contract) -> None:
    branches = [token.chain.fork_at(2) for _ in range(1000)]
    assert branches[0].attach(token).transfer(token.chain.accounts[1], 1).succeeded
    assert branches[-1].attach(token).balanceOf(token.chain.accounts[1]) == 5


def test_a_branch_of_a_branch(token: Contract) -> None:
    branch, bob = token.chain.fork_at(2), token.chain.accounts[1]
    other = branch.attach(token)
    other.transfer(bob, 1)
    other.transfer(bob, 1)
    middle = branch.fork_at(3).attach(token)
    assert middle.balanceOf(bob) == 6
    middle.transfer(bob, 10)
    assert (other.balanceOf(bob), middle.balanceOf(bob)) == (7, 16)
    assert branch.at(1).attach(token).balanceOf(bob) == 0

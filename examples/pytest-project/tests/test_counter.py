"""Tests the contract `Counter`. Each test starts from the state that its fixtures leave."""

import pytest

from ophion import Reverted


@pytest.fixture
def counter(deploy):
    return deploy("Counter", 40)


def test_a_counter_starts_at_its_argument(counter):
    assert counter.count() == 40


def test_add_counts_and_emits_an_event(counter, accounts):
    receipt = counter.add(2, sender=accounts[1])
    assert counter.count() == 42
    event = receipt.events.one("Counted")
    assert (event.who, event.count) == (accounts[1].address, 42)


def test_a_large_step_reverts(counter):
    with pytest.raises(Reverted) as error:
        counter.add(101)
    assert error.value.name == "TooMuch"
    assert error.value.args_by_name == {"step": 101}
    assert counter.count() == 40


def test_a_snapshot_undoes_what_follows(chain, counter):
    with chain.snapshot():
        counter.add(1)
        chain.mine(10)
    assert counter.count() == 40


def test_any_account_can_be_impersonated(chain, counter):
    whale = chain.impersonate("0x" + "d8" * 20)
    whale.balance = 10**18
    receipt = counter.add(5, sender=whale)
    assert receipt.events.one("Counted").who == whale.address


def test_several_transactions_share_a_block(chain, counter):
    with chain.paused_mining():
        first, second = counter.add(1), counter.add(2)
    assert first.block_number == second.block_number
    assert counter.count() == 43

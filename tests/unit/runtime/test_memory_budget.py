"""Tests the eviction order when all clients together hold too much memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ophion.runtime.memory_budget import LITTLE, WORTH_NOTING, MemoryBudget

MUCH = 2 * LITTLE


class Client:
    """A connection that releases its memory."""

    def __init__(self) -> None:
        self.is_gone = False

    def cut_off(self) -> None:
        self.is_gone = True


def gone(*clients: Client) -> list[bool]:
    return [client.is_gone for client in clients]


def test_the_oldest_of_the_large_holders_is_evicted_first() -> None:
    budget, clients = MemoryBudget(3 * MUCH), [Client() for _ in range(5)]
    for client in clients[:3]:
        budget.record(client, MUCH)
    budget.record(clients[0], MUCH + 1)
    assert gone(*clients) == [False, True, False, False, False], "the one that grows goes last"
    budget.record(clients[3], MUCH)
    assert gone(*clients) == [True, True, False, False, False]
    assert (budget.held, budget.cut_off) == (2 * MUCH, 2)


def test_little_and_trusted_holders_go_last() -> None:
    budget = MemoryBudget(4 * MUCH)
    little, unknown_client, known, newcomer = (Client() for _ in range(4))
    budget.record(little, LITTLE, is_trusted=False)
    budget.record(known, MUCH)
    budget.record(unknown_client, MUCH, is_trusted=False)
    budget.record(newcomer, 2 * MUCH, is_trusted=False)
    assert gone(little, known, unknown_client, newcomer) == [False, False, True, False]
    budget.record(newcomer, 3 * MUCH, is_trusted=False)
    assert gone(little, known, newcomer) == [False, True, False]
    budget.record(newcomer, 4 * MUCH)
    assert gone(little, newcomer) == [True, False]
    budget.record(newcomer, 4 * MUCH + 1)
    assert newcomer.is_gone, "nobody else is left"
    assert budget.held == 0


def test_a_few_bytes_are_not_worth_noting_and_settle_what_was() -> None:
    budget, client = MemoryBudget(MUCH), Client()
    assert not budget.report_memory(client, WORTH_NOTING)
    assert budget.held == 0
    assert budget.report_memory(client, WORTH_NOTING + 1)
    assert budget.held == WORTH_NOTING + 1
    budget.report_memory(client, 1)
    assert budget.held == 0
    budget.report_memory(client, MUCH + 1, is_trusted=False)
    assert client.is_gone


def test_a_client_that_holds_nothing_is_forgotten() -> None:
    budget, first, second = MemoryBudget(MUCH), Client(), Client()
    budget.record(first, MUCH)
    budget.settle(first)
    budget.settle(first)
    budget.record(second, MUCH - 1)
    budget.record(second, LITTLE)
    assert gone(first, second) == [False, False]
    assert budget.held == LITTLE


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4 * LITTLE), st.booleans()), max_size=80))
def test_the_sum_is_right_and_never_beyond_the_most(steps: list[tuple[int, int, bool]]) -> None:
    budget, clients, sizes = MemoryBudget(4 * LITTLE), [Client() for _ in range(10)], dict[Client, int]()
    for number, size, is_trusted in steps:
        client = clients[number]
        if client.is_gone:
            client.is_gone = False
        if size % 7 == 0:
            budget.settle(client)
            sizes.pop(client, None)
        else:
            budget.record(client, size, is_trusted)
            sizes[client] = size
        sizes = {one: held for one, held in sizes.items() if not one.is_gone}
        assert budget.held == sum(sizes.values()) <= 4 * LITTLE

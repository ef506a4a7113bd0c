"""Clients that do not take their answers."""

from __future__ import annotations

from ophion.rpc.transport.slow_clients import Backlog


class Client:
    def __init__(self) -> None:
        self.is_gone = False

    def cut_off(self) -> None:
        self.is_gone = True


def test_whoever_is_behind_longest_goes_when_all_hold_too_much() -> None:
    backlog = Backlog(100)
    clients = [Client() for _ in range(4)]
    for client in clients[:3]:
        backlog.note(client, 30)
    assert not any(client.is_gone for client in clients)
    backlog.note(clients[3], 40)
    assert [client.is_gone for client in clients] == [True, False, False, False]


def test_one_client_may_hold_what_it_asked_for() -> None:
    backlog, client = Backlog(100), Client()
    backlog.note(client, 1000)
    assert not client.is_gone


def test_a_client_that_caught_up_holds_nothing() -> None:
    backlog, first, second = Backlog(100), Client(), Client()
    backlog.note(first, 90)
    backlog.settle(first)
    backlog.settle(first)
    backlog.note(second, 90)
    backlog.note(second, 95)
    assert not first.is_gone
    assert not second.is_gone

"""Tests which calls run on the event loop."""

from __future__ import annotations

from ophion.rpc.services.call_cost import CallCosts

TOKEN = b"\x11" * 20
BALANCE_OF = bytes.fromhex("70a08231")


def test_a_call_is_unknown_until_it_has_been_seen_to_be_light() -> None:
    calls = CallCosts()
    assert not calls.knows(TOKEN, BALANCE_OF + b"x" * 32)
    calls.record(TOKEN, BALANCE_OF + b"x" * 32, 24_000)
    assert calls.knows(TOKEN, BALANCE_OF + b"y" * 32)
    assert not calls.knows(TOKEN, b"\0\0\0\0")
    assert not calls.knows(None, BALANCE_OF)


def test_a_call_that_turned_out_heavy_goes_back_to_the_lane() -> None:
    calls = CallCosts()
    calls.record(TOKEN, BALANCE_OF, 24_000)
    calls.record(TOKEN, BALANCE_OF, 50_000_000)
    assert not calls.knows(TOKEN, BALANCE_OF)


def test_what_is_remembered_is_bounded() -> None:
    calls = CallCosts()
    for number in range(10_000):
        calls.record(TOKEN, number.to_bytes(4, "big"), 1)
    assert sum(calls.knows(TOKEN, number.to_bytes(4, "big")) for number in range(10_000)) <= 4096


def test_a_function_is_heavy_while_it_is_not_light() -> None:
    calls = CallCosts()
    assert not calls.tried.is_heavy(TOKEN, BALANCE_OF)
    calls.record(TOKEN, BALANCE_OF + b"x" * 32, 50_000_000)
    calls.record(None, b"a contract is made", 50_000_000)
    assert calls.tried.is_heavy(TOKEN, BALANCE_OF + b"y" * 32)
    assert not calls.tried.is_heavy(TOKEN, b"\x12\x34\x56\x78")
    calls.record(TOKEN, BALANCE_OF, 24_000)
    assert not calls.tried.is_heavy(TOKEN, BALANCE_OF)


def test_what_is_remembered_of_heavy_functions_is_bounded_too() -> None:
    calls = CallCosts()
    for number in range(10_000):
        calls.record(TOKEN, number.to_bytes(4, "big"), 50_000_000)
    assert sum(calls.tried.is_heavy(TOKEN, number.to_bytes(4, "big")) for number in range(10_000)) <= 4096

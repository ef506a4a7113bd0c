"""Which calls run on the loop."""

from __future__ import annotations

from ophion.rpc.questions.light_calls import LightCalls

TOKEN = b"\x11" * 20
BALANCE_OF = bytes.fromhex("70a08231")


def test_a_call_is_unknown_until_it_has_been_seen_to_be_light() -> None:
    calls = LightCalls()
    assert not calls.knows(TOKEN, BALANCE_OF + b"x" * 32)
    calls.note(TOKEN, BALANCE_OF + b"x" * 32, 24_000)
    assert calls.knows(TOKEN, BALANCE_OF + b"y" * 32)
    assert not calls.knows(TOKEN, b"\0\0\0\0")
    assert not calls.knows(None, BALANCE_OF)


def test_a_call_that_turned_out_heavy_goes_back_to_the_lane() -> None:
    calls = LightCalls()
    calls.note(TOKEN, BALANCE_OF, 24_000)
    calls.note(TOKEN, BALANCE_OF, 50_000_000)
    assert not calls.knows(TOKEN, BALANCE_OF)


def test_what_is_remembered_is_bounded() -> None:
    calls = LightCalls()
    for number in range(10_000):
        calls.note(TOKEN, number.to_bytes(4, "big"), 1)
    assert sum(calls.knows(TOKEN, number.to_bytes(4, "big")) for number in range(10_000)) <= 4096


def test_a_call_object_is_heavy_when_its_function_was() -> None:
    calls = LightCalls()
    usual = {"to": "0x" + TOKEN.hex().upper(), "data": "0x70A08231" + "00" * 32}
    assert not calls.is_heavy(usual)
    calls.note(TOKEN, BALANCE_OF, 50_000_000)
    assert calls.is_heavy(usual)
    assert not calls.is_heavy({"to": "0x" + TOKEN.hex(), "input": "0x12345678"})
    assert not calls.is_heavy({"to": 5})
    calls.note(TOKEN, BALANCE_OF, 24_000)
    assert not calls.is_heavy(usual)

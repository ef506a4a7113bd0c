"""Tests functions, events and errors of an ABI."""

from __future__ import annotations

import pytest

from ophion.abi.interface import Abi, decode_error, signature_entry
from ophion.errors import AbiError


def test_reads_signatures() -> None:
    entry = signature_entry("function swap((address token, uint256 amount)[] legs, bytes data) payable returns (bool)")
    function = Abi([entry]).function("swap")
    assert function.signature == "swap((address,uint256)[],bytes)"
    assert function.is_payable
    assert [one.name for one in function.outputs.codecs] == ["bool"]


def test_selector_is_that_of_the_standard() -> None:
    assert Abi.of(["transfer(address,uint256)"]).function("transfer").selector.hex() == "a9059cbb"


def test_names_the_argument_that_does_not_fit() -> None:
    function = Abi.of(["f(uint8 small, address to)"]).function("f")
    with pytest.raises(AbiError, match="argument small: 300 is not a uint8"):
        function.encode((300, "0x" + "11" * 20))


def test_takes_arguments_by_name() -> None:
    function = Abi.of(["f(uint8 small, bool flag)"]).function("f")
    assert list(function.inputs.bind((1,), {"flag": True})) == [1, True]
    with pytest.raises(AbiError, match="missing"):
        function.inputs.bind((1,), {"other": 1})


def test_lists_functions_for_an_unknown_name() -> None:
    with pytest.raises(AbiError, match="Functions of this contract: f, g"):
        Abi.of(["f()", "g()"]).function("h")


def test_tells_events_of_one_name_apart_by_their_indexed_arguments() -> None:
    abi = Abi.of(["event Transfer(address indexed a, address indexed b, uint256 v)"])
    topic = abi.events["Transfer"].topic
    word = (5).to_bytes(32, "big")
    assert abi.decode_log([topic, word, word], word) is not None
    assert abi.decode_log([topic, word, word, word], b"") is None


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("", "no reason given"),
        ("4e487b71" + f"{0x11:064x}", "panic 0x11: arithmetic overflow or underflow"),
        ("deadbeef", "unknown error 0xdeadbeef"),
    ],
)
def test_shows_errors(data: str, shown: str) -> None:
    assert str(decode_error(bytes.fromhex(data))) == shown


def test_shows_custom_errors() -> None:
    abi = Abi.of(["error TooLow(uint256 balance)"])
    (error,) = abi.errors.values()
    found = decode_error(error.encode([5]), [abi])
    assert (found.name, found.args, str(found)) == ("TooLow", {"balance": 5}, "TooLow(balance=5)")


def test_an_event_with_another_number_of_topics_is_refused() -> None:
    event = Abi.of(["event Moved(address indexed from, address to)"]).events["Moved"]
    word = b"\x11".rjust(32, b"\0")
    assert list(event.values([event.topic, word], word)) == ["0x" + "11".rjust(40, "0")] * 2
    with pytest.raises(AbiError, match="1 indexed arguments, not 2"):
        event.values([event.topic, word, word], word)

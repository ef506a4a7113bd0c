"""Typed data gives the same hashes as wallets, and one clear error for invalid input."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st

from ophion.native.crypto import keccak256
from ophion.wallet.typed_data import TypedDataError, typed_data_hash

MAIL: dict[str, Any] = {
    "types": {
        "EIP712Domain": [
            {"name": "name", "type": "string"},
            {"name": "version", "type": "string"},
            {"name": "chainId", "type": "uint256"},
            {"name": "verifyingContract", "type": "address"},
        ],
        "Person": [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}],
        "Mail": [
            {"name": "from", "type": "Person"},
            {"name": "to", "type": "Person[]"},
            {"name": "contents", "type": "string"},
            {"name": "numbers", "type": "int16[2][]"},
            {"name": "tag", "type": "bytes4"},
            {"name": "raw", "type": "bytes"},
            {"name": "urgent", "type": "bool"},
        ],
    },
    "primaryType": "Mail",
    "domain": {"name": "Mail", "version": "1", "chainId": 2018, "verifyingContract": "0x" + "cc" * 20},
    "message": {
        "from": {"name": "Cow", "wallet": "0x" + "11" * 20},
        "to": [{"name": "Bob", "wallet": "0x" + "22" * 20}, {"name": "Eve", "wallet": "0x" + "33" * 20}],
        "contents": "Hello",
        "numbers": [[-1, 2], [3, -32768]],
        "tag": "0x12345678",
        "raw": "0xdeadbeef",
        "urgent": True,
    },
}


def of_wallets(document: dict[str, Any]) -> bytes:
    message = encode_typed_data(full_message=document)
    return keccak256(b"\x19" + message.version + message.header + message.body)


def test_the_hash_is_that_of_wallets() -> None:
    assert typed_data_hash(MAIL) == of_wallets(MAIL)


def test_numbers_may_be_text() -> None:
    document = copy.deepcopy(MAIL)
    document["domain"]["chainId"] = "0x7e2"
    document["message"]["numbers"] = [["-1", "2"], ["0x3", "-32768"]]
    assert typed_data_hash(document) == typed_data_hash(MAIL)


def test_the_type_of_the_domain_may_be_left_out() -> None:
    document = copy.deepcopy(MAIL)
    del document["types"]["EIP712Domain"]
    assert typed_data_hash(document) == typed_data_hash(MAIL)


def test_the_domain_alone_can_be_signed() -> None:
    document = {**MAIL, "primaryType": "EIP712Domain", "message": {}}
    assert typed_data_hash(document) != typed_data_hash(MAIL)


def test_a_structure_that_is_not_there_counts_as_nothing() -> None:
    document = copy.deepcopy(MAIL)
    document["message"]["from"] = None
    assert typed_data_hash(document) != typed_data_hash(MAIL)


def changed(path: str, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(MAIL)
    *parents, last = path.split(".")
    place: Any = document
    for name in parents:
        place = place[name]
    place[last] = value
    return document


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (5, "typed data: an object is expected"),
        ({}, "types: an object is expected"),
        (changed("types.Person", {}), "types.Person: an array is expected"),
        (changed("types.Person", [{"name": "x"}]), "types.Person: members have a name and a type"),
        (changed("types.Person", [{"name": "name", "type": "x" * 200}]), "types.Person: members have"),
        (changed("types.a b", []), "types: 'a b' is not the name of a type"),
        (changed("types", {f"T{number}": [] for number in range(65)}), "types: more than 64"),
        (changed("types.Person", [{"name": "n", "type": "bool"}] * 1025), "types: more than 1024 members"),
        (changed("primaryType", "Letter"), "primaryType: one of the types is expected"),
        (changed("domain", []), "domain: an object is expected"),
        (changed("message", 5), r"message: an object \(Mail\) is expected"),
        (changed("message.from", "Cow"), r"message.from: an object \(Person\) is expected"),
        (changed("message.from.wallet", "0x12"), "message.from.wallet: 20 bytes are expected"),
        (changed("message.from.wallet", None), "message.from.wallet: bytes in hexadecimal are expected"),
        (changed("message.to", {}), "message.to: an array of any number of elements is expected"),
        (changed("message.contents", 5), "message.contents: a string is expected"),
        (changed("message.numbers", [[1]]), r"message.numbers\[0\]: an array of 2 elements is expected"),
        (changed("message.numbers", [[1, 32768]]), r"message.numbers\[0\]\[1\]: the number does not fit 16 bits"),
        (changed("message.numbers", [[1, True]]), "a number is expected"),
        (changed("message.numbers", [[1, 1.5]]), "a number is expected"),
        (changed("message.numbers", [[1, "9" * 100]]), "a number is expected"),
        (changed("message.tag", "0x1234567890"), "message.tag: at most 4 bytes are expected"),
        (changed("message.raw", "0x1"), "message.raw: "),
        (changed("message.urgent", 1), "message.urgent: true or false is expected"),
        (changed("types.Person", [{"name": "x", "type": "uint7"}]), "there are no integers of 7 bits"),
        (changed("types.Person", [{"name": "x", "type": "uint264"}]), "there are no integers of 264 bits"),
        (changed("types.Person", [{"name": "x", "type": "fixed"}]), "unknown type 'fixed'"),
        (changed("types.Person", [{"name": "name", "type": "string" + "[]" * 40}]), "an array of any number"),
    ],
)
def test_what_does_not_fit_is_named(document: Any, problem: str) -> None:
    with pytest.raises(TypedDataError, match=problem):
        typed_data_hash(document)


def test_depth_and_size_are_bounded() -> None:
    deep: Any = {}
    for _ in range(400):
        deep = {"next": [deep]}
    types = {"Node": [{"name": "next", "type": "Node[]"}]}
    with pytest.raises(TypedDataError, match="nested deeper than 32 levels"):
        typed_data_hash({"types": types, "primaryType": "Node", "domain": {}, "message": deep})
    with pytest.raises(TypedDataError, match="more than 100000 values"):
        typed_data_hash(changed("message.numbers", [[1, 2]] * 50_000))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("0x00"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@given(place=st.sampled_from(["types", "types.Mail", "domain", "message", "message.to", "primaryType"]), value=values)
def test_anything_gives_a_hash_or_one_error(place: str, value: Any) -> None:
    try:
        found = typed_data_hash(changed(place, value))
    except TypedDataError:
        return
    assert len(found) == 32

"""Tests that entries of requests are checked in the documented order."""

from __future__ import annotations

import pytest

from ophion.errors import RulesError
from ophion.permissions.list_requests import requested_accounts, requested_nodes

A = "0x" + "ab" * 20
NODE = "enode://" + "ab" * 64 + "@127.0.0.1:30303"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "Request contains an empty list of accounts"),
        ([A, A, "0x12"], "Request contains an invalid account"),
        ([A[2:]], "Request contains an invalid account"),
        ([A, A.upper().replace("X", "x")], "Request contains duplicate accounts"),
    ],
)
def test_accounts(texts: list[str], message: str) -> None:
    with pytest.raises(RulesError) as raised:
        requested_accounts(texts)
    assert raised.value.message == message


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "Request contains an empty list of nodes"),
        (["x", "x"], "Request contains duplicate nodes"),
        ([NODE, NODE.replace("127", "300")], "Request contains an invalid node"),
        ([NODE, NODE.replace("ab", "AB")], "Request contains duplicate nodes"),
    ],
)
def test_nodes(texts: list[str], message: str) -> None:
    with pytest.raises(RulesError) as raised:
        requested_nodes(texts)
    assert raised.value.message == message


def test_good_ones_are_read() -> None:
    assert requested_accounts([A]) == [b"\xab" * 20]
    assert [node.url for node in requested_nodes([NODE])] == [NODE]
    assert len(requested_nodes([NODE, NODE + "?discport=0"])) == 2

"""Tests privacy groups: creation, search and deletion, and their transactions."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.testing.private_transactions import text
from ophion.testing.signing import DEV_KEYS
from tests.unit.rpc.private_interface import FOR, FROM, THIRD, PrivateInterface, open_private

SENDER = "0x" + DEV_KEYS[0].address.hex()


@pytest.fixture
def private(tmp_path: Path) -> Iterator[PrivateInterface]:
    with open_private(tmp_path) as opened:
        yield opened


def test_groups_are_made_found_used_and_deleted(private: PrivateInterface) -> None:
    members = [text(FROM), text(FOR)]
    id = private.ask("priv_createPrivacyGroup", {"addresses": members, "name": "both", "description": "of us"})
    again = private.ask("priv_createPrivacyGroup", members, "both", "again")
    assert id != again
    found = private.ask("priv_findPrivacyGroup", members)
    shown = {"privacyGroupId": id, "name": "both", "description": "of us", "type": "PANTHEON", "members": members}
    assert shown in found
    assert {group["privacyGroupId"] for group in found} == {id, again}
    assert private.ask("priv_findPrivacyGroup", members[:1]) == []

    marker = private.send(privacy_group_id=b64decode(id))
    receipt = private.ask("priv_getTransactionReceipt", marker)
    assert (receipt["status"], receipt["privacyGroupId"]) == ("0x1", id)
    assert "privateFor" not in receipt
    assert private.ask("priv_getPrivateTransaction", marker)["privacyGroupId"] == id
    assert private.ask("priv_deletePrivacyGroup", id) == id
    assert private.error("eea_sendRawTransaction", private.signed(nonce=1, privacy_group_id=b64decode(id))) == (
        -50100,
        "Offchain Privacy group does not exist.",
    )
    assert private.ask("priv_getTransactionCount", SENDER, id) == "0x1", "its state stays"
    assert private.error("priv_deletePrivacyGroup", id) == (-50200, "PrivacyGroupNotFound")
    assert private.error("priv_createPrivacyGroup", [text(THIRD)]) == (-50200, "CreatePrivacyGroupShouldIncludeSelf")
    assert private.error("priv_createPrivacyGroup", "nobody")[0] == -32602
    assert private.ask("privx_findFlexiblePrivacyGroup", members) == []

"""Tests selections of `open_chain`. tests/integration/test_cli_export.py tests the rows."""

from __future__ import annotations

import pytest

from ophion.data.data_frames import event_topic
from ophion.errors import CommandError
from ophion.native.crypto import keccak256


def test_an_event_is_named_by_signature_hash_or_well_known_name() -> None:
    topic = keccak256(b"Transfer(address,address,uint256)")
    assert event_topic("Transfer") == topic
    assert event_topic("Transfer(address, address, uint256)") == topic
    assert event_topic("0x" + topic.hex()) == topic
    with pytest.raises(CommandError, match="The event 'Minted' has no types"):
        event_topic("Minted")

from __future__ import annotations

import pytest

from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.rlpx.disconnect import decode_reason, encode_reason


def test_one_element_in_a_list_is_written() -> None:
    assert encode_reason(DisconnectReason.TOO_MANY_PEERS).hex() == "c104"
    assert encode_reason(DisconnectReason.REQUESTED).hex() == "c180"
    assert encode_reason(DisconnectReason.SUBPROTOCOL).hex() == "c110"


@pytest.mark.parametrize("reason", list(DisconnectReason))
def test_what_is_written_is_read(reason: DisconnectReason) -> None:
    assert decode_reason(encode_reason(reason)) is reason


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ("c104", DisconnectReason.TOO_MANY_PEERS),
        ("04", DisconnectReason.TOO_MANY_PEERS),
        ("10", DisconnectReason.SUBPROTOCOL),
        ("c180", DisconnectReason.REQUESTED),
        ("c100", DisconnectReason.REQUESTED),
        ("00", DisconnectReason.REQUESTED),
        ("80", DisconnectReason.REQUESTED),
        ("c0", None),
        ("", None),
        ("c10c", None),
        ("c1ff", None),
        ("c20405", None),
        ("deadbeef", None),
    ],
)
def test_the_shapes_of_other_clients(payload: str, reason: DisconnectReason | None) -> None:
    assert decode_reason(bytes.fromhex(payload)) is reason

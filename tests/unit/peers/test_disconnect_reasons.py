from __future__ import annotations

from ophion.errors import OphionError
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved


def test_values_are_those_of_the_wire() -> None:
    assert [reason.value for reason in DisconnectReason] == [*range(12), 0x0F, 0x10]


def test_misbehaviour_names_its_reason() -> None:
    error = PeerMisbehaved(DisconnectReason.BREACH, "an answer nobody asked for")
    assert isinstance(error, OphionError)
    assert str(error) == "an answer nobody asked for (breach)"

from __future__ import annotations

from ophion.peers.connection.traffic import Traffic
from ophion.peers.rlpx.capability import Capability, SharedCapability


def test_messages_and_bytes_are_counted_by_capability() -> None:
    traffic = Traffic()
    eth = SharedCapability(Capability("eth", 68, 17, ("Status",)), 0x10)
    traffic.note_received(eth, 0, 100)
    traffic.note_received(eth, 0, 50)
    traffic.note_received(eth, 7, 1)
    traffic.note_sent(eth, 0, 9)
    traffic.note_p2p(traffic.sent, 2)
    assert traffic.received == {("eth", "Status", 0): 2, ("eth", "0x07", 7): 1}
    assert traffic.payload_received == {"eth": 151}
    assert traffic.sent == {("eth", "Status", 0): 1, ("p2p", "Ping", 2): 1}
    assert traffic.payload_sent == {"eth": 9}

from __future__ import annotations

import pytest

from ophion.native.crypto import PrivateKey
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.peer import Peer
from ophion.peers.peer_table import PeerConnected, PeerEvent, PeerGone, Peers
from ophion.peers.rlpx.hello import Hello


def peer(number: int) -> Peer:
    hello = Hello.of("x", [], 1, PrivateKey(number.to_bytes(32, "big")).public_key)
    return Peer(None, hello, [], local=("", 0), remote=("127.0.0.1", 1), is_inbound=True, since=0.0)  # type: ignore[arg-type]


def test_peers_are_found_by_id_and_by_address() -> None:
    peers, one, two = Peers(), peer(1), peer(2)
    peers.add(one)
    peers.add(two)
    assert list(peers) == [one, two]
    assert len(peers) == 2
    assert peers.by_id(one.id) is one
    assert peers.by_address(two.address) is two
    assert peers.by_id(bytes(64)) is None


def test_listeners_receive_events() -> None:
    peers, one, received = Peers(), peer(1), list[PeerEvent]()
    peers.events.listen(received.append)
    peers.add(one)
    peers.remove(one, DisconnectReason.CLIENT_QUITTING, by_us=False)
    peers.remove(one, DisconnectReason.CLIENT_QUITTING, by_us=False)
    assert received == [PeerConnected(one), PeerGone(one, DisconnectReason.CLIENT_QUITTING, False)]
    assert len(peers) == 0


def test_another_connection_of_the_same_node_is_not_removed_by_mistake() -> None:
    peers, first, second = Peers(), peer(1), peer(1)
    peers.add(first)
    peers.remove(second, DisconnectReason.TCP_ERROR, by_us=True)
    assert peers.by_id(first.id) is first
    with pytest.raises(ValueError, match="connected already"):
        peers.add(second)


def test_a_peer_may_leave_while_the_others_are_walked_through() -> None:
    peers = Peers()
    for number in range(1, 4):
        peers.add(peer(number))
    for one in peers:
        peers.remove(one, DisconnectReason.REQUESTED, by_us=True)
    assert len(peers) == 0

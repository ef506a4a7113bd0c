from __future__ import annotations

import pytest

from ophion.native.crypto import PrivateKey
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.peer import Peer
from ophion.peers.peer_table import Peers
from ophion.peers.policy.admission import Admission, PeerLimits, keeps_newer
from ophion.peers.policy.bans import Bans
from ophion.peers.rlpx.hello import Hello

IDS = sorted(PrivateKey(number.to_bytes(32, "big")).public_key for number in range(1, 12))
OWN, LOWER, HIGHER = IDS[5], IDS[0], IDS[10]


class Link:
    is_open = True


def peer(node_id: bytes, is_inbound: bool = True, is_open: bool = True) -> Peer:
    link = Link()
    link.is_open = is_open
    hello = Hello.of("x", [], 1, node_id)
    return Peer(link, hello, [], local=("", 0), remote=("127.0.0.1", 1), is_inbound=is_inbound, since=0.0)  # type: ignore[arg-type]


def admission(
    peers: Peers,
    limits: PeerLimits | None = None,
    bans: Bans | None = None,
    static: tuple[bytes, ...] = (),
    **more: set[bytes],
) -> Admission:
    return Admission(
        OWN, peers, limits or PeerLimits(), bans or Bans(), lambda node_id: node_id in static, more.get("banned", set())
    )


def refused(admission: Admission, newcomer: Peer) -> DisconnectReason:
    with pytest.raises(PeerMisbehaved) as caught:
        admission.judge(newcomer, 0.0)
    return caught.value.reason


def filled(*members: Peer) -> Peers:
    peers = Peers()
    for member in members:
        peers.add(member)
    return peers


def test_limits_disconnect_with_too_many_peers() -> None:
    peers = filled(peer(IDS[1]), peer(IDS[2], is_inbound=False))
    assert refused(admission(peers, PeerLimits(2)), peer(IDS[3])) is DisconnectReason.TOO_MANY_PEERS
    assert admission(peers, PeerLimits(3)).judge(peer(IDS[3]), 0.0) is None


def test_the_share_of_inbound_peers() -> None:
    limits = PeerLimits.of(5, 60)
    assert limits == PeerLimits(5, 3)
    peers = filled(*(peer(one) for one in IDS[1:4]))
    assert refused(admission(peers, limits), peer(IDS[4])) is DisconnectReason.TOO_MANY_PEERS
    assert admission(peers, limits).judge(peer(IDS[4], is_inbound=False), 0.0) is None
    assert admission(peers, PeerLimits.of(5, None)).judge(peer(IDS[4]), 0.0) is None


def test_static_peers_are_accepted_above_the_limits_and_take_no_slot() -> None:
    judge = admission(filled(peer(IDS[1])), PeerLimits(1, 1), static=(IDS[1], IDS[2]))
    assert judge.judge(peer(IDS[3]), 0.0) is None
    assert judge.judge(peer(IDS[2]), 0.0) is None
    assert admission(Peers(), PeerLimits(0), static=(IDS[2],)).judge(peer(IDS[2]), 0.0) is None
    assert refused(admission(Peers(), PeerLimits(0)), peer(IDS[3])) is DisconnectReason.TOO_MANY_PEERS


def test_the_operators_list_bans_all_but_static_peers() -> None:
    bans = Bans()
    bans.bar(IDS[1], 0.0)
    assert refused(admission(Peers(), bans=bans), peer(IDS[1])) is DisconnectReason.REQUESTED
    assert admission(Peers(), bans=bans, static=(IDS[1],)).judge(peer(IDS[1]), 0.0) is None
    assert admission(Peers(), bans=bans).judge(peer(IDS[1]), 601.0) is None
    judge = admission(Peers(), static=(IDS[1],), banned={IDS[1]})
    assert refused(judge, peer(IDS[1])) is DisconnectReason.REQUESTED


@pytest.mark.parametrize("other", [LOWER, HIGHER])
def test_of_two_directions_the_one_of_the_lower_id_stays_on_both_sides(other: bytes) -> None:
    for first_inbound in (True, False):
        here = keeps_newer(OWN, peer(other, first_inbound), peer(other, not first_inbound))
        # for the other node, both connections have the opposite direction, and may arrive in the opposite order
        same_order = keeps_newer(other, peer(OWN, not first_inbound), peer(OWN, first_inbound))
        other_order = keeps_newer(other, peer(OWN, first_inbound), peer(OWN, not first_inbound))
        assert here is same_order
        assert here is not other_order
        kept_is_outbound = first_inbound if here else not first_inbound
        assert kept_is_outbound is (min(OWN, other) == OWN)


def test_of_one_direction_the_older_stays() -> None:
    for is_inbound in (True, False):
        assert not keeps_newer(OWN, peer(LOWER, is_inbound), peer(LOWER, is_inbound))


def test_a_duplicate_connection_is_refused_or_replaces_the_other() -> None:
    present = peer(LOWER, is_inbound=False)
    assert admission(filled(present)).judge(peer(LOWER, is_inbound=True), 0.0) is present
    present = peer(HIGHER, is_inbound=False)
    judge = admission(filled(present))
    assert refused(judge, peer(HIGHER, is_inbound=True)) is DisconnectReason.ALREADY_CONNECTED


def test_a_closing_connection_frees_its_slot_and_is_not_counted_twice() -> None:
    present = peer(LOWER, is_open=False)
    assert admission(filled(present), PeerLimits(1)).judge(peer(LOWER), 0.0) is present

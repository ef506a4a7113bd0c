"""Tests when a connection pings a peer and when the peer times out."""

from __future__ import annotations

from ophion.peers.connection.liveness import PeerLiveness
from ophion.peers.connection.timeouts import StageTimeouts

TIMING = StageTimeouts(idle=10.0, message=60.0)


def test_a_silent_peer_is_pinged_once_and_then_times_out() -> None:
    liveness = PeerLiveness(TIMING, 0.0)
    assert not liveness.needs_ping(9.9)
    assert liveness.next_check_s(4.0) == 6.0
    assert liveness.needs_ping(10.0)
    assert not liveness.needs_ping(11.0)
    assert liveness.next_check_s(12.0) == 8.0
    assert liveness.problem(19.9, False) is None
    assert liveness.problem(20.0, False) == "nothing received for 20 s"


def test_received_bytes_answer_a_ping() -> None:
    liveness = PeerLiveness(TIMING, 0.0)
    liveness.is_probed = True
    assert liveness.problem(1.0, False) == "no answer to a ping after a second connection proved the same key"
    assert liveness.needs_ping(10.0)
    liveness.received(12.0)
    assert liveness.problem(30.0, False) is None
    assert liveness.needs_ping(22.0)


def test_a_message_must_arrive_within_its_limit() -> None:
    liveness = PeerLiveness(TIMING, 0.0)
    liveness.received(59.0)
    assert liveness.problem(60.0, has_partial_message=False) is None
    assert liveness.problem(60.0, has_partial_message=True) == "a message takes longer than 60 s to arrive"


def test_a_stall_of_this_process_gives_the_peer_one_more_period() -> None:
    liveness = PeerLiveness(TIMING, 0.0)
    liveness.extend(100.0)
    assert liveness.problem(100.0, True) is None
    assert liveness.next_check_s(100.0) == 10.0
    assert liveness.problem(110.0, False) == "nothing received for 20 s"

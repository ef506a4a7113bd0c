"""Every node offers snap/1 beside eth."""

from __future__ import annotations

from pathlib import Path

from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.peers.snap.protocol import SnapProtocol
from ophion.runtime.clock import SystemClock
from ophion.runtime.thread_pools import ThreadLanes
from tests.unit.peers.snap.states import opened


def test_the_capability_has_eight_named_codes(tmp_path: Path) -> None:
    lanes = ThreadLanes()
    with opened(tmp_path) as chain:
        lane: FairWorkerQueue[Peer] = FairWorkerQueue(lanes.peers, lambda peer: False)
        (capability,) = SnapProtocol(chain.store, lane, lambda peer: False, SystemClock()).capabilities
    lanes.close()
    assert (str(capability), capability.length, len(capability.max_bytes)) == ("snap/1", 8, 8)
    assert capability.message_name(6) == "GetTrieNodes"

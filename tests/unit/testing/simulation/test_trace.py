"""Tests the text of traces."""

from __future__ import annotations

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.fake_crypto import Content, FakeMessageFactory, stand_in_address, stand_in_block
from ophion.testing.simulation.network import SimulatedNetwork
from ophion.testing.simulation.trace import Trace


def test_a_diagram_has_a_column_per_member_and_a_row_per_message() -> None:
    trace = Trace(3)
    hand = FakeMessageFactory(stand_in_address(1), Ibft2())
    block = stand_in_block(4, hand.address, Content(bytes(32), 1, 1))
    trace.add_note(0.5, "V2 stops")
    trace.message(1.0, 1, hand.proposal(4, 0, block, None), {0: 0.012, 2: None})
    trace.message(2.0, 1, hand.round_change(4, 1, None), {0: 0.5})
    lines = trace.diagram().splitlines()
    assert lines[0].split() == ["time", "V0", "V1", "V2", "height/round"]
    assert lines[1].strip() == "0.500  -- V2 stops"
    assert lines[2].split() == ["1.000", "+12", "Proposal", "lost", "4/0", block.hash[:4].hex()]
    assert lines[3].split() == ["2.000", "+500", "RoundChg", "4/1", "nothing", "prepared"]


def test_a_long_trace_is_cut_at_the_front() -> None:
    trace = Trace(1)
    for number in range(10):
        trace.add_note(float(number), f"line {number}")
    lines = trace.diagram(2).splitlines()
    assert lines[1].strip() == "...  (8 rows before)"
    assert [line.split()[-1] for line in lines[2:]] == ["8", "9"]


def test_a_run_is_traced_with_its_decisions() -> None:
    trace = Trace(4)
    world = SimulatedNetwork(NetworkSettings(Ibft2(), 4), trace=trace)
    world.start()
    world.run(1.2)
    text = trace.diagram()
    assert "V0 starts at height 0" in text
    for word in ("Proposal", "Prepare", "Commit", "imports", "decided in round 0"):
        assert word in text

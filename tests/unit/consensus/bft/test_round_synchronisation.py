"""A round at the maximum timeout waits for a quorum."""

from __future__ import annotations

from ophion.consensus.bft.round_synchronisation import RoundSynchronisation
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import ZERO_ADDRESS

MEMBERS = [bytes([n]) * 20 for n in range(1, 5)]


def test_below_the_cap_the_timeout_runs_at_once() -> None:
    gathering = RoundSynchronisation(ValidatorSet.of(1, MEMBERS, ZERO_ADDRESS), RoundTiming(1.0, 2.0, 8.0))
    gathering.start(1)
    assert gathering.is_complete


def test_at_the_cap_a_quorum_completes_the_round_once() -> None:
    gathering = RoundSynchronisation(ValidatorSet.of(1, MEMBERS, ZERO_ADDRESS), RoundTiming(1.0, 2.0, 8.0))
    gathering.start(2)
    assert not gathering.is_complete
    assert not gathering.record_round(MEMBERS[1], 2, 2)
    assert not gathering.record_round(MEMBERS[1], 2, 2), "the same validator counts once"
    assert not gathering.record_round(MEMBERS[2], 1, 2), "an earlier round does not count"
    assert gathering.record_round(MEMBERS[2], 3, 2)
    assert gathering.is_complete
    assert not gathering.record_round(MEMBERS[3], 3, 2)
    gathering.start(3)
    assert gathering.reached == {MEMBERS[1]: 2, MEMBERS[2]: 3, MEMBERS[3]: 3}
    assert gathering.is_complete, "two others and this validator are a quorum of four"

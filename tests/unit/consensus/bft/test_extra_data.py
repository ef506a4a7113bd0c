"""Tests the parts of the extra data that both protocols share. The tests of each protocol cover its encoding."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.extra_data import own_vanity, read_vote
from ophion.consensus.engine import Vote
from ophion.errors import DecodeError


def test_configured_extra_data_is_padded_on_the_left_and_cut() -> None:
    assert own_vanity(b"ophion") == bytes(26) + b"ophion"
    assert own_vanity(b"x" * 40) == b"x" * 32
    assert own_vanity(b"") == bytes(32)


def test_a_vote_names_a_target_and_a_direction() -> None:
    assert read_vote([bytes(20), b"\xff"], (b"",)) == Vote(bytes(20), True)
    assert read_vote([bytes(20), b""], (b"",)) == Vote(bytes(20), False)
    for bad in ([bytes(20)], [bytes(19), b"\xff"], [[], b"\xff"], [bytes(20), b"\x00"], [bytes(20), []]):
        with pytest.raises(DecodeError):
            read_vote(bad, (b"",))

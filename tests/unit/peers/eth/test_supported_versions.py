"""Tests the offered version numbers."""

from __future__ import annotations

import pytest

from ophion.peers.eth.supported_versions import offered_numbers
from ophion.peers.eth.versions import offered


@pytest.mark.parametrize(("is_final", "newest"), [(True, 69), (False, 68)])
def test_the_numbers_are_those_of_the_versions(is_final: bool, newest: int) -> None:
    assert offered_numbers(is_final) == tuple(version.number for version in offered(is_final))
    assert offered_numbers(is_final)[-1] == newest

"""Tests errors in a test network."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.testing.network import TestNetwork


def test_a_node_that_does_not_start_takes_the_others_with_it(tmp_path: Path) -> None:
    network = TestNetwork(tmp_path, "qbft", validators=2, own={1: ["--no-such-option"]})
    with pytest.raises(AssertionError, match="did not start"), network:
        pass
    assert [node.is_running for node in network.nodes] == [False, False]

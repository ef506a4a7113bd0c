"""Tests the readiness check."""

from __future__ import annotations

from ophion.rpc.endpoints.health import Health
from ophion.rpc.services.context import SyncStatus


def test_a_node_without_network_and_in_sync_is_ready() -> None:
    assert Health(lambda: None).is_ready(5, 0)


def test_a_node_waits_for_its_peers() -> None:
    health = Health(lambda: None, lambda: 2)
    assert health.is_ready(2, 2)
    assert not health.is_ready(3, 2)


def test_a_validator_that_cannot_sign_is_not_ready_unless_the_request_says_so() -> None:
    health = Health(lambda: None, None, lambda: "etcd is away")
    assert not health.is_ready(1, 2)
    assert health.is_ready(1, 2, checks_vote_store=False)


def test_a_node_far_behind_is_not_ready() -> None:
    health = Health(lambda: SyncStatus(0, 7, 10))
    assert health.is_ready(1, 3)
    assert not health.is_ready(1, 2)

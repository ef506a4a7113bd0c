"""Tests the list of methods that workers answer."""

from __future__ import annotations

import pytest

from ophion.node.rpc_workers.local_methods import LOCAL_METHODS
from ophion.rpc.methods import all_methods
from ophion.rpc.schema.registry import HTTP


@pytest.mark.parametrize("name", sorted(LOCAL_METHODS))
def test_local_methods_exist_and_only_read(name: str) -> None:
    registry = all_methods()
    assert registry.knows(name)
    spec = registry.spec(name)
    assert spec.name == name, "the list has no aliases"
    assert HTTP in spec.transports
    assert not spec.sends_raw_transaction
    assert spec.needs <= {"chain", "state", "pool"}
    assert "caller" not in {parameter.name for parameter in spec.signature.parameters}

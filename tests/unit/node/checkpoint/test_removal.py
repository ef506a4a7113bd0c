"""After the removal, the database has only the canonical chain and two states."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.errors import CheckpointError
from ophion.native.store import open_store
from ophion.node.checkpoint.removal import remove_rest
from tests.unit.native.worlds import KEYS, World, signed


def test_only_the_states_of_genesis_and_head_stay(tmp_path: Path) -> None:
    world = World(tmp_path)
    parent = world.genesis
    for nonce in range(60):
        parent = world.block(parent, [signed(KEYS[0], nonce, bytes([nonce + 1]) * 20, 1)])
        world.extend(parent)
    before = {name: entries for name, entries, _ in world.store.usage()}
    remove_rest(world.store, lambda done: None)
    after = {name: entries for name, entries, _ in world.store.usage()}
    assert (before["roots"], after["roots"]) == (61, 2)
    assert after["node_rows"] < before["node_rows"] / 4
    assert (after["headers"], after["receipts"]) == (61, 61)
    assert world.store.check(10) == []
    world.store.close()


def test_an_empty_database_is_no_checkpoint(tmp_path: Path) -> None:
    store = open_store(tmp_path, durable=False)
    with pytest.raises(CheckpointError, match="holds no chain"):
        remove_rest(store, lambda done: None)
    store.close()

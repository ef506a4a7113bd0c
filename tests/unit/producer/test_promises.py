"""The record of a validator in a real database, written, read again, and damaged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.consensus.bft.ibft2 import Ibft2
from ophion.consensus.bft.memory import Memory
from ophion.consensus.bft.qbft import Qbft
from ophion.errors import StorageError
from ophion.native.store import Store, open_store
from ophion.producer.promises import MEMORY_KEY, Promises
from ophion.runtime.lanes import InlineLanes


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path, durable=False)
    yield store
    store.close()


def test_what_was_promised_is_known_after_a_restart(store: Store) -> None:
    promises = Promises(store, InlineLanes())
    assert promises.is_blank
    assert promises.recall(Qbft()) is None
    asyncio.run(promises.remember(Qbft(), Memory(5)))
    later = Promises(store, InlineLanes())
    assert not later.is_blank
    assert later.recall(Qbft()) == Memory(5)
    assert later.recall(Ibft2()) is None, "a height of another dialect is another height"


def test_promises_that_cannot_be_read_stop_the_node(store: Store) -> None:
    store.put_meta(MEMORY_KEY, b"qbft\0junk")
    promises = Promises(store, InlineLanes())
    with pytest.raises(StorageError, match="has promised to others cannot be read"):
        promises.recall(Qbft())


def test_who_was_restored_has_no_memory(store: Store) -> None:
    store.put_meta(MEMORY_KEY, b"")
    promises = Promises(store, InlineLanes())
    assert promises.is_blank
    assert promises.recall(Qbft()) is None

"""States for pool tests, with the accounts that a test names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from ophion.native.executor import State, genesis_state
from ophion.native.store import open_store


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Mapping[bytes, tuple[int, int]]], State]]:
    """Return a function that makes a state from address -> (nonce, balance)."""
    path: Path = tmp_path_factory.mktemp("world")
    store = open_store(path)

    def make(accounts: Mapping[bytes, tuple[int, int]]) -> State:
        alloc = [(address, nonce, balance, b"", []) for address, (nonce, balance) in accounts.items()]
        return genesis_state(store, alloc).state

    yield make
    store.close()

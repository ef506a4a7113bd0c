"""Tests that readers of one process share a database, and that other uses get a clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion import Chain
from ophion.data import open_chain
from ophion.errors import StorageError
from ophion.node.datadir import DataDirectory
from ophion.node.shared_store import SharedStore


@pytest.fixture
def data_path(tmp_path: Path) -> Path:
    with Chain(tmp_path / "data") as chain:
        chain.mine(2)
    return tmp_path / "data"


def test_several_readers_share_one_database(data_path: Path) -> None:
    first, second = DataDirectory.beside_a_node(data_path), DataDirectory.beside_a_node(data_path)
    store = first.store(read_only=True)
    assert second.store(read_only=True) is store
    first.close()
    first.close()
    assert store.head() is not None
    second.close()
    with pytest.raises(Exception, match="the database is closed"):
        store.head()
    again = SharedStore.open(data_path / "database")
    assert again.store is not store
    again.release()


def test_a_notebook_may_open_a_chain_again(data_path: Path) -> None:
    chain = Chain.read(data_path)
    tables = open_chain(data_path)
    chain = Chain.read(data_path)
    tables = open_chain(data_path)
    assert chain.block_number == tables.reader.head().number == 2
    # the writer needs the database alone
    with pytest.raises(StorageError, match=r"is open in this program already. Close the chain or the reader"):
        Chain(data_path)
    tables.close()
    del chain, tables
    with Chain(data_path) as writer:
        assert writer.block_number == 2
        with pytest.raises(StorageError, match="is open in this program already"):
            open_chain(data_path)


def test_a_chain_that_was_dropped_without_close_is_not_in_the_way(data_path: Path) -> None:
    assert Chain(data_path).block_number == 2
    with Chain(data_path) as chain:
        assert chain.block_number == 2

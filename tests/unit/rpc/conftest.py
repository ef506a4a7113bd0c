"""Node fixtures for RPC tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.node.config import NodeConfig
from tests.conftest import DATA
from tests.unit.rpc.interface import Interface, import_chain, open_interface


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Interface]:
    """Open a node of the development network that mines on demand."""
    with open_interface(tmp_path) as opened:
        yield opened


@pytest.fixture(scope="package")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interface]:
    """Open a node with the sample chain of 32 blocks, which tests only read."""
    path = tmp_path_factory.mktemp("sample")
    genesis = import_chain(path, DATA / "original-chain/genesis.json", DATA / "original-chain/test.blocks")
    with open_interface(path, genesis, NodeConfig()) as opened:
        yield opened

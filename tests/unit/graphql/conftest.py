"""Provides chains that many of these tests read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.graphql.client import Client, open_client, original_chain


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Open Pantheon's test chain, which tests only read."""
    with original_chain(tmp_path_factory.mktemp("original")) as opened:
        yield opened


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Client]:
    """Open a development network with only its genesis."""
    with open_client(tmp_path) as opened:
        yield opened

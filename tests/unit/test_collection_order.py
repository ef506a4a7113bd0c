"""All workers of a run have one order of tests, whichever folder they collect first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from tests.conftest import pytest_collection_modifyitems


@dataclass(frozen=True)
class Item:
    path: Path


@pytest.mark.parametrize("start", [1, 4, 7])
def test_workers_that_collect_in_another_order_run_the_same_order(start: int) -> None:
    # four files with processes and five others: 0.8 * 0 / 4 equals 0 / 5, and so on
    waiting = [Item(Path(f"/tests/integration/test_{number}.py")) for number in range(4)]
    busy = [Item(Path(f"/tests/unit/test_{number}.py")) for number in range(5)]
    first = [*waiting, *busy]
    other = first[start:] + first[:start]

    pytest_collection_modifyitems(cast(Any, first))
    pytest_collection_modifyitems(cast(Any, other))

    assert first == other

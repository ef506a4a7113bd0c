"""A killed import leaves an intact database and can be continued, for kills at random and at chosen moments.

`python -m tests.fuzz.kills --kills=50` is the long form of the first test, `FAULTS=all` of the second.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.faults import Faults
from tests.fuzz.kills import kill_imports, made_chain
from tests.fuzz.small_chain import HEAD, check, import_small


def test_kills_at_random_moments(tmp_path: Path) -> None:
    done = kill_imports(made_chain(tmp_path / "chain"), tmp_path, kills=5, seed=8)
    assert done.kills >= 5
    assert max(done.heads) > 0, "no kill came after the first write transaction"


def test_a_kill_before_any_change_of_a_file_leaves_all_or_nothing(tmp_path: Path, faults: Faults) -> None:
    for moment in faults.moments(tmp_path, sampled=6):
        data = tmp_path / f"killed-{moment}"
        assert import_small(data, env=faults.environment("kill", data, moment)).code == -9
        looked = check(data)
        assert looked.code == 0 or "here is no chain in" in looked.err, looked
        assert f"Head is {HEAD}" in import_small(data).succeeded().out
    assert f"No damage found up to {HEAD}." in check(data).succeeded().out


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Faults:
    """Build the fault injection library."""
    return Faults.built(tmp_path_factory.mktemp("faults"))

"""No command writes into the data directory of another client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ophion.testing.node_process import MINING
from tests.integration.command import ophion

BESU_KEY = "0x8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63"
"""A public test key."""

COMMANDS = [
    MINING,
    ("dev",),
    ("blocks", "import", "--from=chain.rlp"),
    ("blocks", "export", "--to=out.rlp"),
    ("storage", "usage"),
    ("storage", "check"),
    ("storage", "compact"),
    ("storage", "backup", "--to=copy"),
]


def _besu(path: Path) -> None:
    (path / "database").mkdir(parents=True)
    (path / "DATABASE_METADATA.json").write_text(json.dumps({"v2": {"format": "FOREST", "version": 1}}))
    (path / "database" / "CURRENT").write_text("MANIFEST-000004\n")
    (path / "database" / "000012.sst").write_bytes(bytes(64))


def _content(path: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(found): (found.stat().st_mode, found.stat().st_mtime_ns, found.read_bytes() if found.is_file() else b"")
        for found in [path, *path.rglob("*")]
    }


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command)[:20])
def test_no_command_touches_the_data_of_besu(tmp_path: Path, command: tuple[str, ...]) -> None:
    data = tmp_path / "data"
    _besu(data)
    (data / "key").write_text(BESU_KEY)
    (tmp_path / "chain.rlp").write_bytes(b"")
    before = _content(data)
    done = ophion(*command, f"--data-path={data}", cwd=tmp_path)
    done.failed(
        "holds data of Besu (DATABASE_METADATA.json)", "ophion migrate --from-besu=", "docs/migration/README.md"
    )
    assert _content(data) == before


def test_a_key_is_read_there_but_not_made(tmp_path: Path) -> None:
    data = tmp_path / "data"
    _besu(data)
    before = _content(data)
    ophion("public-key", "export", f"--data-path={data}").failed("holds data of Besu")
    assert _content(data) == before
    (data / "key").write_text(BESU_KEY)
    shown = ophion("public-key", "export-address", f"--data-path={data}").succeeded()
    assert shown.out.strip() == "0xfe3b557e8fb62b89f4916b721be55ceb828dbd73"

"""Write-ahead logs of a RocksDB database: the newest writes of its node.

<number>.log            blocks of 32 KiB with records: checksum 4, length 2, type 1, content
MANIFEST-<number>       opened before the log of a run, so the log has a higher number

A node that stopped or was killed leaves its log whole. A damaged log hides the newest blocks: RocksDB reads up to the
damage and reports nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_TYPE_OFFSET: Final = 6
_FIRST_RECYCLED_TYPE: Final = 5
_MANIFEST: Final = "MANIFEST-"


def recycles_logs(path: Path) -> bool:
    """Whether the node overwrites old log files (Besu from 24.1 on). Such a log ends with records of an older log,
    which look like damage.
    """
    return any(_first_type(log) >= _FIRST_RECYCLED_TYPE for _, log in _logs(path))


def missing_end(path: Path) -> str | None:
    """Explain why the newest writes may be missing. Returns None if the newest log has content."""
    logs = _logs(path)
    number, newest = max(logs, default=(0, None))
    if newest is None or number < _manifest_number(path):
        return f"The newest write-ahead log (*.log) is missing in {path}"
    if newest.stat().st_size == 0:
        return f"The newest write-ahead log {newest} is empty"
    return None


def _logs(path: Path) -> list[tuple[int, Path]]:
    return [(int(log.stem), log) for log in path.glob("*.log") if log.stem.isdecimal()]


def _manifest_number(path: Path) -> int:
    name = (path / "CURRENT").read_text(errors="replace").strip().removeprefix(_MANIFEST)
    return int(name) if name.isdecimal() else 0


def _first_type(log: Path) -> int:
    with log.open("rb") as file:
        return (file.read(_TYPE_OFFSET + 1)[_TYPE_OFFSET:] or b"\0")[0]

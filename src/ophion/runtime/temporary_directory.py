"""A directory that is gone afterwards.

`tempfile` of the standard library makes one too, but loads compression, archives and random numbers with it: three
milliseconds and almost a megabyte, of which a node uses nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ophion.runtime.clock import SystemEntropy


@contextmanager
def temporary_directory(prefix: str) -> Iterator[Path]:
    """A new directory that nobody else can look into, where the system (or TMPDIR) wants such things to be."""
    path = Path(os.environ.get("TMPDIR") or "/tmp").absolute() / (prefix + SystemEntropy().token(8).hex())
    path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        import shutil

        shutil.rmtree(path, ignore_errors=True)

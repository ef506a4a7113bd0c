"""Makes a verified checkpoint the database of a node.

<data-path>/checkpoint/archive.part, download.json      a download, kept until it is used or refused
<data-path>/checkpoint/database/                        the database while it is copied and verified
<data-path>/database/                                   exists once the checkpoint is verified and on disk
"""

from __future__ import annotations

import errno
import logging
import shutil
import time
from pathlib import Path
from typing import Final

from ophion.chainspec.genesis import Genesis
from ophion.errors import CheckpointError, StorageError
from ophion.node.checkpoint.archive import PIECE_BYTES, extract_database
from ophion.node.checkpoint.download import SPARE_BYTES, CheckpointDownload
from ophion.node.checkpoint.location import database_file, is_url, shown
from ophion.node.checkpoint.verification_process import verify_in_child
from ophion.node.database_install import install_database
from ophion.node.datadir import DATA_FILE, DataDirectory, refuse_in_use
from ophion.primitives.types import Hash32

log = logging.getLogger(__name__)

_REPORT_S: Final = 5.0


class _Reports:
    """Callback that logs the progress of the verification every few seconds."""

    def __init__(self) -> None:
        self._due = time.monotonic() + _REPORT_S

    def __call__(self, step: str, done: int, total: int | None) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _REPORT_S
            log.info("preparing checkpoint step=%s done=%d total=%s", step, done, total or "unknown")


def install_checkpoint(directory: DataDirectory, location: str, genesis: Genesis, trusted_hash: Hash32 | None) -> None:
    """Fetch, verify and install a checkpoint, unless the data path has a chain. Raises `CheckpointError`.

    After an error, all files of the checkpoint are deleted, except a partial download that the next start can continue.
    """
    staging = directory.path / "checkpoint"
    if (directory.database / DATA_FILE).exists():
        shutil.rmtree(staging, ignore_errors=True)
        log.info("checkpoint not used reason=data path has a chain")
        return
    began = time.monotonic()
    log.info("starting from checkpoint location=%s", shown(location))
    try:
        database = _stage(location, staging)
        verified = verify_in_child(database, genesis, trusted_hash, _Reports())
        install_database(database, directory)
    except StorageError as error:
        if not (staging / "database").exists() and (staging / "archive.part").exists():
            pass  # the download failed: keep the partial file, because the next start continues the download
        else:
            shutil.rmtree(staging, ignore_errors=True)
        raise CheckpointError(f"The checkpoint {shown(location)} cannot be used: {error}.") from error
    shutil.rmtree(staging, ignore_errors=True)
    log.info(
        "checkpoint installed number=%d hash=0x%s elapsed_s=%.1f",
        verified.number,
        verified.hash.hex(),
        time.monotonic() - began,
    )


def _stage(location: str, staging: Path) -> Path:
    """Copy the database file of a checkpoint to the staging directory. Returns the folder of the copy."""
    database = staging / "database"
    try:
        staging.mkdir(exist_ok=True)
        shutil.rmtree(database, ignore_errors=True)
        reports = _Reports()
        if is_url(location):
            archive: Path = CheckpointDownload(
                location, staging, lambda done, size: reports("download", done, size)
            ).run()
            found = None
        else:
            archive = Path(location)
            found = database_file(archive)
        database.mkdir()
        target = database / DATA_FILE
        if found is None:
            free = shutil.disk_usage(staging).free - SPARE_BYTES
            extract_database(archive, target, free, lambda done: reports("extraction", done, None))
        else:
            # a running node would change its database during the copy
            refuse_in_use(archive)
            _copy(found, target, reports)
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
        raise CheckpointError(f"{error.filename or staging}: {reason}") from error
    return database


def _copy(source: Path, target: Path, reports: _Reports) -> None:
    size, done = source.stat().st_size, 0
    free = shutil.disk_usage(target.parent).free - SPARE_BYTES
    if size > free:
        raise CheckpointError(f"it has {size} bytes, and {max(free, 0)} bytes are free")
    with source.open("rb") as file, target.open("xb") as copy:
        while piece := file.read(PIECE_BYTES):
            copy.write(piece)
            done += len(piece)
            reports("copy", done, size)

"""Writes and reads a backup as one tar file, plain or compressed with gzip."""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from ophion.errors import CheckpointError
from ophion.node.checkpoint.location import ARCHIVE_SUFFIXES
from ophion.node.datadir import DATA_FILE
from ophion.runtime.operator_files import force_directory, open_private

PIECE_BYTES: Final = 1 << 20
_GZIP_MAGIC: Final = b"\x1f\x8b"
_COMPRESSION_LEVEL: Final = 1
"""Gzip level. Hashes and signatures hardly compress, so a higher level would only take longer."""
_MAX_MEMBERS: Final = 1000


def write_archive(directory: Path, target: Path) -> int:
    """Write a backup directory to an archive and return the archive's size. The archive gets its name once it is on
    disk.
    """
    partial = target.with_name(target.name + ".partial")
    try:
        with open(partial, "xb", opener=open_private) as file:
            _write(directory, file, is_compressed=not target.name.lower().endswith(ARCHIVE_SUFFIXES[0]))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    force_directory(target.parent)
    return target.stat().st_size


def _write(directory: Path, file: BinaryIO, is_compressed: bool) -> None:
    # DATABASE_METADATA.json comes first, so that a reader of the archive gets it before the large database file
    names = ("DATABASE_METADATA.json", DATA_FILE)
    if is_compressed:
        with tarfile.open(fileobj=file, mode="w:gz", compresslevel=_COMPRESSION_LEVEL) as archive:
            _add(archive, directory, names)
    else:
        with tarfile.open(fileobj=file, mode="w") as archive:
            _add(archive, directory, names)


def _add(archive: tarfile.TarFile, directory: Path, names: tuple[str, ...]) -> None:
    for name in names:
        archive.add(directory / "database" / name, f"database/{name}", filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def extract_database(archive: Path, target: Path, max_bytes: int, on_bytes: Callable[[int], None]) -> None:
    """Write the database file of an archive to a new file.

    Raises `CheckpointError` if the archive has no database, or if the database exceeds `max_bytes`. Extracts no other
    file, and uses no name in the archive as a path.
    """
    try:
        with archive.open("rb") as file:
            is_compressed = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            if is_compressed:
                with tarfile.open(fileobj=file, mode="r|gz") as members:
                    _extract(members, target, max_bytes, on_bytes)
            else:
                with tarfile.open(fileobj=file, mode="r|") as members:
                    _extract(members, target, max_bytes, on_bytes)
    except (tarfile.TarError, EOFError, zlib.error, OverflowError) as error:
        raise CheckpointError(f"the archive is damaged or incomplete: {error}") from error


def _extract(members: tarfile.TarFile, target: Path, max_bytes: int, on_bytes: Callable[[int], None]) -> None:
    for count, member in enumerate(members):
        if count == _MAX_MEMBERS:
            break
        if not member.isfile() or member.name.rpartition("/")[2] != DATA_FILE:
            continue
        content = members.extractfile(member)
        if content is None:
            break
        with content, open(target, "xb", opener=open_private) as file:
            done = 0
            while piece := content.read(PIECE_BYTES):
                done += len(piece)
                if done > max_bytes:
                    raise CheckpointError(f"the archive holds more than {max_bytes} bytes, which is the free space")
                file.write(piece)
                on_bytes(done)
            if done != member.size:
                raise CheckpointError("the archive is damaged or incomplete: unexpected end of data")
        return
    raise CheckpointError("the archive holds no database; `ophion storage backup --to=FILE.tar` writes one that does")

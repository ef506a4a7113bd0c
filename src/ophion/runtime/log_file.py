"""A log file with rotation by size.

The handler writes to `node.log`. A full file becomes `node.log.1`, the previous `node.log.1` becomes `node.log.2`, and
so on; the oldest file is deleted. Another program such as logrotate may move or remove the file; the handler then opens
a new file within a second. A full disk loses lines but does not stop the node; a later line reports how many lines were
lost.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from pathlib import Path
from typing import BinaryIO

from ophion.errors import ConfigError

_LOOKED_EVERY_S = 1.0


class LogFile(logging.Handler):
    """Writes formatted records to a file and rotates it when it is full."""

    def __init__(self, path: Path, max_bytes: int, kept: int) -> None:
        """Open the file. `max_bytes` is 0 for no limit; `kept` is the number of rotated files to keep.

        Raises `ConfigError` when the file cannot be written.
        """
        super().__init__()
        self._path = path
        self._max_bytes = max_bytes
        self._kept = kept
        self._file: BinaryIO | None = None
        self._size = 0
        self._looked = 0.0
        self._lost = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open()
        except OSError as error:
            raise ConfigError(f"The log file {path} cannot be written: {error.strerror}.") from None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = f"{self.format(record)}\n".encode(errors="backslashreplace")
        except Exception:  # noqa: BLE001  # logging reports the error
            self.handleError(record)
            return
        try:
            self._write(line, record)
        except OSError:
            self._lost += 1
            self._drop()

    def close(self) -> None:
        self.acquire()
        try:
            self._drop()
        finally:
            self.release()
        super().close()

    def _write(self, line: bytes, record: logging.LogRecord) -> None:
        self._look()
        if self._max_bytes and self._size and self._size + len(line) > self._max_bytes:
            self._rotate()
        if self._lost:
            note = logging.LogRecord(
                record.name, logging.WARNING, "", 0, "log lines were lost count=%d", (self._lost,), None
            )
            line = f"{self.format(note)}\n".encode() + line
        if self._file is None:
            self._open()
        assert self._file is not None
        if self._file.write(line) != len(line):
            raise OSError(errno.ENOSPC, "the disk is full")
        self._size += len(line)
        self._lost = 0

    def _look(self) -> None:
        """Open a new file if the log path no longer names the open file."""
        now = time.monotonic()
        if self._file is None or now - self._looked < _LOOKED_EVERY_S:
            return
        self._looked = now
        mine = os.fstat(self._file.fileno())
        try:
            there = self._path.stat()
        except FileNotFoundError:
            self._drop()
            return
        if (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino):
            self._drop()
        else:
            self._size = there.st_size  # read the size again, because logrotate's copytruncate shortens the file

    def _rotate(self) -> None:
        self._drop()
        for number in range(self._kept, 0, -1):
            source = self._numbered(number - 1)
            if source.exists():
                source.replace(self._numbered(number))
        if not self._kept:
            self._path.unlink(missing_ok=True)

    def _numbered(self, number: int) -> Path:
        return self._path if number == 0 else self._path.with_name(f"{self._path.name}.{number}")

    def _open(self) -> None:
        # open without a buffer, so that a logged line is in the file even after a crash
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._file = os.fdopen(descriptor, "ab", buffering=0)
        self._size = os.fstat(descriptor).st_size

    def _drop(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

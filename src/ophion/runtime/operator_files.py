"""Files that an operator writes by hand: configuration, users, keys.

Such files are small. An operator may name a device or a database by mistake. Reading such a file must fail quickly with
a clear error, without using all memory or parsing for minutes. A pipe without a writer must fail in the same way. A
pipe with a writer works like a file (`--config-file=<(…)`).
"""

from __future__ import annotations

import os
import re
import select
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ophion.runtime.clock import SystemEntropy

MAX_BYTES: Final = 1024 * 1024
_PATIENCE_S: Final = 10.0
"""Time limit in seconds for reading a pipe."""
_CHUNK: Final = 1024 * 1024
_MAX_PARTS: Final = 64
_KEY: Final = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_LONG_KEY: Final = rf"(?<![\w\"'.-])(?:{_KEY}[ \t]*+\.[ \t]*+){{{_MAX_PARTS}}}"
"""Matches TOML keys with too many parts, because the parser takes quadratic time for them."""


class NotRegularFile(ValueError):
    """Raised when the path names something other than a small file."""


def content_of(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a file.

    Raises `OSError` when the file cannot be read, `NotRegularFile` when the file is too large or is a pipe that does
    not end.
    """
    # open without blocking: opening a pipe without a writer would block the process, which could handle no signal
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
            max_bytes = min(max_bytes, MAX_BYTES)  # limit the bytes that are read, because a device has no size
        size, parts = 0, list[bytes]()
        deadline = time.monotonic() + _PATIENCE_S
        while found.st_size <= max_bytes and size <= max_bytes:
            if not stat.S_ISREG(found.st_mode):
                _wait(descriptor, deadline)
            part = os.read(descriptor, min(_CHUNK, max_bytes + 1 - size))
            if not part:
                return b"".join(parts)
            size += len(part)
            parts.append(part)
        raise NotRegularFile(f"more than {max_bytes} bytes")
    finally:
        os.close(descriptor)


def _wait(descriptor: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise NotRegularFile(f"a pipe that does not come to its end within {_PATIENCE_S:g} s")


def refuse_unusual(path: Path) -> None:
    """Check a file before a library reads it by name and without limits.

    Raises `NotRegularFile` for a file that is too large, and for everything that is not a regular file, such as a pipe.
    Raises `OSError` when the file does not exist.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise NotRegularFile("not a plain file")
    if found.st_size > MAX_BYTES:
        raise NotRegularFile(f"more than {MAX_BYTES} bytes")


def write_whole(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file atomically and durably. Raises `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # choose the name here, because `tempfile` imports many modules that a node does not need
    temporary = path.parent / f".{path.name}.{SystemEntropy().token(8).hex()}"
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:  # write bytes, so that line ends do not change
            os.fchmod(file.fileno(), mode)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    force_directory(path.parent)


def rewrite(path: Path, content: bytes) -> None:
    """Write a file as `write_whole` does. A symbolic link is followed, and an existing file keeps its mode. A device or
    a pipe is written directly. Raises `OSError`.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        write_whole(Path(os.path.realpath(path)), content)
        return
    if stat.S_ISREG(found.st_mode):
        write_whole(Path(os.path.realpath(path)), content, stat.S_IMODE(found.st_mode))
    else:
        path.write_bytes(content)


def open_private(path: str, flags: int) -> int:
    """Open a file. A new file is readable by its owner only. Serves as the `opener` argument of `open`."""
    return os.open(path, flags, 0o600)


def force_directory(path: Path) -> None:
    """Make the entries of a directory durable after a file was created, renamed or removed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def table_of(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file. Raises `OSError`, or `ValueError` with the reason."""
    import tomllib  # lazy import: few nodes read a TOML file

    try:
        text = content_of(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text (at byte {error.start})") from None
    if re.search(_LONG_KEY, text):
        raise ValueError(f"a key of more than {_MAX_PARTS} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None

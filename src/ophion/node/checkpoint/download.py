"""Downloads an archive over HTTP(S). An interrupted download continues where it ended.

    archive.part       the bytes received so far
    download.json      the address, the HTTP validator (ETag or date) and the size of the file

The download continues only if the server confirms, by the HTTP validator, that the file is the same (`If-Range`).
"""

from __future__ import annotations

import errno
import http.client
import json
import logging
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from ophion.errors import CheckpointError
from ophion.node.checkpoint.archive import PIECE_BYTES
from ophion.runtime.operator_files import open_private
from ophion.version import client_version

log = logging.getLogger(__name__)

READ_TIMEOUT_S: Final = 30.0
MAX_ATTEMPTS: Final = 6
"""Maximum number of consecutive download attempts that receive no byte."""
MAX_ARCHIVE_BYTES: Final = 1 << 40
SPARE_BYTES: Final = 64 << 20
"""Free disk space in bytes that a download must leave."""
_STALL_S: Final = 60.0
_MIN_BYTES_A_STALL: Final = 64 * 1024
"""Minimum number of bytes that must arrive in `_STALL_S` seconds. A slower server counts as a failed attempt."""
_MAX_BACKOFF_S: Final = 30.0
_FORCED_EVERY_BYTES: Final = 64 << 20
_PARTIAL, _UNSATISFIABLE = 206, 416
_RETRIED_STATUS: Final = (408, 429, 500, 502, 503, 504)
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+)", re.ASCII)


class _TryAgain(Exception):
    """Raised when a download attempt fails but another attempt may succeed."""


class _Known(Struct):
    """URL, HTTP validator and size of the file on the server."""

    url: str
    validator: str = ""
    size: int | None = None


class CheckpointDownload:
    """One download of an archive into a directory, with retries."""

    def __init__(
        self,
        url: str,
        folder: Path,
        on_bytes: Callable[[int, int | None], None],
        *,
        timeout_s: float = READ_TIMEOUT_S,
        max_bytes: int = MAX_ARCHIVE_BYTES,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare a download. `on_bytes` receives the number of received bytes and the total, or None if the total is
        unknown.
        """
        self.file = folder / "archive.part"
        self._notes = folder / "download.json"
        self._url = url
        self._on_bytes = on_bytes
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._sleep = sleep
        self._monotonic = monotonic
        self._known = self._read_notes()

    def run(self) -> Path:
        """Return the complete file. Raises `CheckpointError` if the server does not deliver the file; received bytes
        stay.
        """
        failures = 0
        while not self._is_complete:
            before = self._size
            try:
                self._attempt()
            except (_TryAgain, OSError, http.client.HTTPException) as error:
                if _is_final(error):
                    raise CheckpointError(f"the download fails: {_reason(error)}") from error
                failures = failures + 1 if self._size <= before else 1
                if failures == MAX_ATTEMPTS:
                    raise CheckpointError(
                        f"the download fails: {_reason(error)}. {self._size} bytes are kept; start the node again to"
                        " continue"
                    ) from error
                pause_s = min(_MAX_BACKOFF_S, 2.0 ** (failures - 1))
                log.warning("download interrupted reason=%s retry_after_s=%g", _reason(error), pause_s)
                self._sleep(pause_s)
        return self.file

    @property
    def _size(self) -> int:
        return self.file.stat().st_size if self.file.exists() else 0

    @property
    def _is_complete(self) -> bool:
        return self._known.size is not None and self._size == self._known.size

    def _attempt(self) -> None:
        at = self._size if self._known.validator else 0
        headers = {"User-Agent": client_version(), "Accept-Encoding": "identity"}
        if at:
            headers |= {"Range": f"bytes={at}-", "If-Range": self._known.validator}
        try:
            response = urllib.request.urlopen(
                urllib.request.Request(self._url, headers=headers), timeout=self._timeout_s
            )
        except urllib.error.HTTPError as error:
            self._refused(error)
            return
        with response:
            if self._url.lower().startswith("https:") and not response.url.lower().startswith("https:"):
                raise CheckpointError("the server redirects from https to http")
            self._receive(response, at if self._continues(response, at) else 0)

    def _refused(self, error: urllib.error.HTTPError) -> None:
        with error:
            if error.code == _UNSATISFIABLE:
                # more bytes are already downloaded than the file has now, so the file on the server has changed
                self._forget()
                raise _TryAgain("the file on the server has changed")
            if error.code in _RETRIED_STATUS:
                raise _TryAgain(f"HTTP status {error.code}")
            raise CheckpointError(f"the server answers with HTTP status {error.code}")

    def _continues(self, response: http.client.HTTPResponse, at: int) -> bool:
        """Whether the response continues the received bytes. Stores size and HTTP validator of the file from the
        response.
        """
        if response.status == _PARTIAL:
            found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if found is None or int(found[1]) != at:
                self._forget()
                raise _TryAgain("the server returns another range than the requested one")
            size: int | None = int(found[3])
        else:
            length = response.headers.get("Content-Length", "")
            size = int(length) if length.isascii() and length.isdecimal() else None
        validator = response.headers.get("ETag", "")
        if not validator or validator.startswith("W/"):
            validator = response.headers.get("Last-Modified", "")
        if response.status == _PARTIAL and size != self._known.size:
            self._forget()
            raise _TryAgain("the file on the server has changed")
        self._known = _Known(self._url, validator, size)
        self._notes.write_text(json.dumps({"url": self._url, "validator": validator, "size": size}))
        return response.status == _PARTIAL

    def _receive(self, response: IO[bytes], at: int) -> None:
        limit = min(self._max_bytes, at + shutil.disk_usage(self.file.parent).free - SPARE_BYTES)
        size = self._known.size
        if size is not None and size > limit:
            raise CheckpointError(f"the archive has {size} bytes, and {max(limit, 0)} bytes are free")
        with open(self.file, "r+b" if at else "wb", opener=open_private) as file:
            file.seek(at)
            window, began, forced = at, self._monotonic(), at
            # `read1` returns what has arrived; `read` would wait for a whole piece, however slow the server is
            read = getattr(response, "read1", response.read)
            while piece := read(PIECE_BYTES):
                file.write(piece)
                at += len(piece)
                if at > limit or (size is not None and at > size):
                    raise CheckpointError(f"the server sends more than {size if size is not None else limit} bytes")
                self._on_bytes(at, size)
                now = self._monotonic()
                if now - began > _STALL_S:
                    if at - window < _MIN_BYTES_A_STALL:
                        raise _TryAgain(f"only {at - window} bytes in {_STALL_S:g} s")
                    window, began = at, now
                if at - forced >= _FORCED_EVERY_BYTES:
                    file.flush()
                    os.fsync(file.fileno())
                    forced = at
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
        if size is None:
            self._known.size = at
        elif at < size:
            raise _TryAgain(f"the connection ended after {at} of {size} bytes")

    def _read_notes(self) -> _Known:
        try:
            notes = json.loads(self._notes.read_bytes())
            size = notes["size"]
            known = _Known(str(notes["url"]), str(notes["validator"]), size if isinstance(size, int) else None)
        except (OSError, ValueError, KeyError, TypeError):
            return _Known(self._url)
        if known.url != self._url or not known.validator:
            return _Known(self._url)
        return known

    def _forget(self) -> None:
        self._known = _Known(self._url)
        self.file.unlink(missing_ok=True)
        self._notes.unlink(missing_ok=True)


def _is_final(error: Exception) -> bool:
    """Whether the error is permanent, so that another attempt would fail too."""
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    is_full = isinstance(cause, OSError) and cause.errno == errno.ENOSPC
    # compare the name of the class, because `ssl` is imported only for https
    return is_full or type(cause).__name__ == "SSLCertVerificationError"


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.URLError):
        cause = error.reason
        return (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(cause)
    if isinstance(error, TimeoutError):
        return "no data in time"
    return str(error) or type(error).__name__

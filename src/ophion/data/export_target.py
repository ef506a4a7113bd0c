"""Targets of an export: a directory, or an fsspec URL. A file is either complete or absent.

A file is written, then published. Another thread may publish it, so that writers do not wait for the disk or an upload.
"""

from __future__ import annotations

import errno
import io
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol

from msgspec import Struct

from ophion.data.optional_packages import require
from ophion.errors import CommandError

TEMPORARY_PREFIX = ".unfinished-"
_CHUNK_BYTES = 1 << 20
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "az", "abfs"}
"""Schemes of object stores. They have no folders, and creating a folder could create a bucket."""


class Written(Struct, frozen=True):
    """Size and checksum of a file."""

    size: int
    crc32: str
    """CRC-32 of the content, in hexadecimal (docs/decisions/0212-crc-32-of-exported-files.md)."""


class UnfinishedFile(Protocol):
    """A file that becomes visible when it is published."""

    file: IO[bytes]
    """Takes the content, from the start to the end. It cannot be read."""

    def publish(self) -> Written:
        """Make the file visible and durable under its name. After an error, it is discarded."""

    def discard(self) -> None:
        """Delete the file."""


class Target(Protocol):
    """A directory or URL whose files are named by relative paths."""

    def create(self, path: str) -> UnfinishedFile:
        """Start a file."""

    def write(self, path: str, fill: Callable[[IO[bytes]], None]) -> Written:
        """Write a file completely, or not at all if an error occurs."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a small file, or None when the file is missing."""

    def checksum(self, path: str) -> Written | None:
        """Return size and checksum of a file, or None when the file is missing."""

    def delete(self, path: str) -> None:
        """Delete a file."""

    def list(self, folder: str) -> list[str]:
        """Return the files below a folder, or an empty list when the folder is missing."""

    def location(self, path: str) -> str:
        """Return the path or URL of a file."""


def open_target(place: str) -> Target:
    """Return the target of a directory or a URL such as s3://bucket/folder."""
    if place.startswith("file:"):
        place = place.removeprefix("file:").removeprefix("//")
    return RemoteTarget(place) if "://" in place else DirectoryTarget(Path(place))


class _CheckedFile(io.RawIOBase):
    """Writes to a file and computes size and checksum of what is written."""

    def __init__(self, file: IO[bytes], refused: Callable[[OSError], CommandError]) -> None:
        self._file = file
        self._refused = refused
        self._crc = 0
        self._size = 0

    def writable(self) -> bool:
        """Return true, as files for writing do."""
        return True

    def write(self, content: Any) -> int:
        """Write all bytes of an object."""
        try:
            self._file.write(content)
        except OSError as error:
            raise self._refused(error) from error
        self._crc = zlib.crc32(content, self._crc)
        size = memoryview(content).nbytes
        self._size += size
        return size

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._size

    def written(self) -> Written:
        """Return size and checksum of the bytes written so far."""
        return _written(self._size, self._crc)


def _fill(unfinished: UnfinishedFile, fill: Callable[[IO[bytes]], None]) -> Written:
    try:
        fill(unfinished.file)
    except BaseException:
        unfinished.discard()
        raise
    return unfinished.publish()


def _checksum(file: IO[bytes]) -> Written:
    crc, size = 0, 0
    while chunk := file.read(_CHUNK_BYTES):
        crc = zlib.crc32(chunk, crc)
        size += len(chunk)
    return _written(size, crc)


def _written(size: int, crc: int) -> Written:
    return Written(size, f"{crc:08x}")


class DirectoryTarget:
    """Files in a directory. Each file is written under a temporary name, flushed to disk and renamed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            if not root.is_dir():
                root.mkdir(parents=True, exist_ok=True)
                return
            for left in root.rglob(f"{TEMPORARY_PREFIX}*"):
                left.unlink(missing_ok=True)
        except OSError as error:
            raise _refused(root, error) from error

    def create(self, path: str) -> UnfinishedFile:
        """Start a file under a temporary name."""
        return _DirectoryFile(self.root / path)

    def write(self, path: str, fill: Callable[[IO[bytes]], None]) -> Written:
        """Write a file and publish it."""
        try:
            return _fill(self.create(path), fill)
        except OSError as error:
            raise _refused(self.root / path, error) from error

    def read(self, path: str) -> bytes | None:
        """Return the content of a small file."""
        try:
            return (self.root / path).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CommandError(f"Unable to read {self.root / path}: {error.strerror}") from error

    def checksum(self, path: str) -> Written | None:
        """Read a file and return its checksum."""
        try:
            with (self.root / path).open("rb") as file:
                return _checksum(file)
        except FileNotFoundError:
            return None

    def delete(self, path: str) -> None:
        """Delete a file if it exists."""
        (self.root / path).unlink(missing_ok=True)

    def list(self, folder: str) -> list[str]:
        """Return the part files below a folder, in ascending order."""
        if not (self.root / folder).is_dir():
            return []
        found = (self.root / folder).glob("from=*/part-*")
        return sorted(path.relative_to(self.root).as_posix() for path in found)

    def location(self, path: str) -> str:
        """Return the path of a file."""
        return str(self.root / path)


class _DirectoryFile:
    """A file under a temporary name. To publish it, flush it to disk and rename it, then flush its directory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_name(f"{TEMPORARY_PREFIX}{path.name}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._opened = self._temporary.open("wb")
        except OSError as error:
            raise _refused(path, error) from error
        self._checked = _CheckedFile(self._opened, lambda error: _refused(path, error))
        self.file: IO[bytes] = self._checked  # type: ignore[assignment]  # writers need no other methods

    def publish(self) -> Written:
        """Flush the file, rename it, flush the directory."""
        try:
            with self._opened:
                self._opened.flush()
                os.fsync(self._opened.fileno())
            self._temporary.replace(self._path)
            _flush_directory(self._path.parent)
        except BaseException as error:
            self.discard()
            if isinstance(error, OSError):
                raise _refused(self._path, error) from error
            raise
        return self._checked.written()

    def discard(self) -> None:
        """Delete the temporary file."""
        with suppress(OSError):
            self._opened.close()
        with suppress(OSError):
            self._temporary.unlink(missing_ok=True)


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(path: Path, error: OSError) -> CommandError:
    reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
    return CommandError(f"Unable to write {path}: {reason}. Files that were finished before are complete.")


class RemoteTarget:
    """Files of an fsspec URL. Each file is written locally and then uploaded, so a failed upload leaves no object."""

    def __init__(self, url: str) -> None:
        fsspec = require("fsspec")
        self._url = url.rstrip("/")
        self._open: Callable[[], Any] = lambda: fsspec.core.url_to_fs(self._url, skip_instance_cache=True)
        try:
            self._files, self._root = self._open()
        except (ImportError, ValueError) as error:
            raise CommandError(f"Unable to use {url}: {error}") from error
        self._uploaders: deque[Any] = deque()
        """File systems of fsspec that no upload uses now."""

    def create(self, path: str) -> UnfinishedFile:
        """Start a local file that is uploaded when it is published."""
        return _UploadedFile(lambda file: self._publish(path, file))

    def write(self, path: str, fill: Callable[[IO[bytes]], None]) -> Written:
        """Write a file locally, then upload it."""
        return _fill(self.create(path), fill)

    def _publish(self, path: str, file: IO[bytes]) -> None:
        try:
            self._guarded(path, lambda: self._upload(path, file))
        except FileNotFoundError as error:
            raise CommandError(f"{self.location(path)}: the bucket or folder does not exist") from error

    def _upload(self, path: str, file: IO[bytes]) -> None:
        place = f"{self._root}/{path}"
        folder = place.rpartition("/")[0]
        protocols = {self._files.protocol} if isinstance(self._files.protocol, str) else {*self._files.protocol}
        if not protocols & _OBJECT_STORES:
            self._files.makedirs(folder, exist_ok=True)
        # the transaction publishes the file only after the whole upload
        with self._uploader() as files, files.transaction, files.open(place, "wb") as remote:
            while chunk := file.read(_CHUNK_BYTES):
                remote.write(chunk)
        self._files.invalidate_cache(folder)

    @contextmanager
    def _uploader(self) -> Iterator[Any]:
        """Yield a file system that no other thread uses during this upload, because all threads of a file system share
        one transaction.
        """
        try:
            files = self._uploaders.pop()
        except IndexError:
            files, _ = self._open()
        try:
            yield files
        finally:
            self._uploaders.append(files)

    def read(self, path: str) -> bytes | None:
        """Return the content of a small file."""
        try:
            content: bytes = self._guarded(path, lambda: self._files.cat_file(f"{self._root}/{path}"))
        except FileNotFoundError:
            return None
        return content

    def checksum(self, path: str) -> Written | None:
        """Download a file and return its checksum."""

        def read() -> Written:
            with self._files.open(f"{self._root}/{path}", "rb") as file:
                return _checksum(file)

        try:
            found: Written = self._guarded(path, read)
        except FileNotFoundError:
            return None
        return found

    def delete(self, path: str) -> None:
        """Delete a file if it exists."""
        with suppress(FileNotFoundError):
            self._guarded(path, lambda: self._files.rm_file(f"{self._root}/{path}"))

    def list(self, folder: str) -> list[str]:
        """Return the part files below a folder, in ascending order."""
        place = f"{self._root}/{folder}/from=*/part-*"
        try:
            found = self._guarded(folder, lambda: self._files.glob(place))
        except FileNotFoundError:
            return []  # S3 reports a missing bucket here; the error of the first upload names the bucket
        return sorted(folder + path.rpartition(f"/{folder}")[2] for path in found)

    def location(self, path: str) -> str:
        """Return the URL of a file."""
        return f"{self._url}/{path}"

    def _guarded(self, path: str, work: Callable[[], Any]) -> Any:
        """Turn errors of any file system into one-line errors. `FileNotFoundError` passes unchanged."""
        try:
            return work()
        except FileNotFoundError:
            raise
        except Exception as error:
            raise CommandError(f"{self.location(path)}: {str(error) or type(error).__name__}") from error


class _UploadedFile:
    """A temporary local file. To publish it, upload it."""

    def __init__(self, upload: Callable[[IO[bytes]], None]) -> None:
        import tempfile  # lazy import: only remote targets need tempfile

        self._upload = upload
        self._folder = Path(tempfile.gettempdir())
        self._opened = tempfile.TemporaryFile(prefix="ophion-export-")  # noqa: SIM115 - closed when published
        self._checked = _CheckedFile(self._opened, lambda error: _refused(self._folder, error))
        self.file: IO[bytes] = self._checked  # type: ignore[assignment]  # writers need no other methods

    def publish(self) -> Written:
        """Upload the file."""
        try:
            with self._opened:
                self._opened.seek(0)
                self._upload(self._opened)
        except OSError as error:
            raise _refused(self._folder, error) from error
        return self._checked.written()

    def discard(self) -> None:
        """Delete the local file."""
        with suppress(OSError):
            self._opened.close()

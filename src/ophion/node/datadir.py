"""The data directory of a node. Only one process at a time may use it.

<data-path>/key                               the node's private key
<data-path>/lock                              held by the process that uses the directory
<data-path>/database/                         chain and state (LMDB)
<data-path>/database/DATABASE_METADATA.json   {"version":1}, checked before the database is opened
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec

from ophion.errors import KeyFileError, StorageError
from ophion.native.crypto import PrivateKey
from ophion.native.store import Store, open_store
from ophion.node.foreign_data import refuse_foreign_data
from ophion.node.node_key_file import (
    PASSWORD_OPTION,
    VALIDATOR_PASSWORD_OPTION,
    check_key_file,
    load_key,
    load_or_create_key,
)
from ophion.node.storage_options import StorageConfig
from ophion.runtime.options import Options, option

if TYPE_CHECKING:
    from ophion.node.shared_store import SharedStore

LAYOUT_VERSION = 1

_IS_A_FILE = "it is a file, or lies under one"
_OTHERS = 0o077
DATA_FILE, LOCK_FILE = "data.mdb", "lock.mdb"
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


class DataConfig(Options):
    """Data: data directory and key files."""

    data_path: Path = option(
        "--data-path",
        default=Path("ophion-data"),
        metavar="DIRECTORY",
        help="Directory of chain, state and keys; created when missing.",
    )
    node_private_key_file: Path | None = option(
        "--node-private-key-file",
        default=None,
        help="Private key of this node, as 64 hex digits or encrypted (Web3 Secret Storage); written when missing. "
        "Otherwise the file `key` in the data path.",
    )
    node_private_key_password_file: Path | None = option(
        PASSWORD_OPTION,
        default=None,
        help="File whose first line is the password of an encrypted private key. Otherwise the terminal asks for it.",
    )

    validator_private_key_file: Path | None = option(
        "--validator-private-key-file",
        default=None,
        help="Private key that signs blocks and consensus messages, as 64 hex digits or encrypted. Nodes that share it "
        "need --vote-store. Otherwise the node's private key signs.",
    )
    validator_private_key_password_file: Path | None = option(
        VALIDATOR_PASSWORD_OPTION,
        default=None,
        help="File whose first line is the password of an encrypted validator key. Otherwise the terminal asks for it.",
    )

    def problems(self) -> Iterator[str]:
        try:
            str(self.data_path).encode()
        except UnicodeEncodeError:
            # refuse a path that is not UTF-8, because LMDB accepts only text paths
            yield f"The data path {str(self.data_path)!a} cannot be used: its name is not UTF-8."
        else:
            # use `os.path`, because `Path.is_file` raises an error if a permission is missing
            if os.path.isfile(self.data_path):
                yield f"The data path {self.data_path} cannot be used: {_IS_A_FILE}."
        if self.node_private_key_file is not None and os.path.exists(self.node_private_key_file):
            try:
                check_key_file(self.node_private_key_file, self.node_private_key_password_file)
            except KeyFileError as error:
                yield str(error)
        if self.validator_private_key_file is None and self.validator_private_key_password_file is not None:
            yield f"{VALIDATOR_PASSWORD_OPTION} needs --validator-private-key-file."
        if self.validator_private_key_file is not None:
            try:
                check_key_file(self.validator_private_key_file, self.validator_private_key_password_file)
            except KeyFileError as error:
                yield str(error)

    @property
    def key_file(self) -> Path:
        """Return the path of the node's key file: the configured file, or `key` in the data path."""
        return self.node_private_key_file or self.data_path / "key"


class DataDirectory:
    """An open data directory, as a context manager. Holds the lock until the directory is closed."""

    def __init__(self, path: Path, lock: int | None) -> None:
        self.path = path
        self._lock = lock
        self._store: Store | None = None
        self._shared: SharedStore | None = None

    @classmethod
    def open(cls, path: Path, holds_program: bool = False) -> DataDirectory:
        """Open and lock a directory for reading and writing. Creates a missing directory.

        With `holds_program`, the directory is also Besu's home, and other users may still use the program in it.
        """
        refuse_foreign_data(path)
        with _explained(path):
            # set the umask, so that only the owner can read files that this process writes
            os.umask(_OTHERS)
            path.mkdir(parents=True, exist_ok=True)
            _close_to_others(path, holds_program)
            return cls(path, _locked(path, os.O_RDWR | os.O_CREAT))

    @classmethod
    def open_existing(cls, path: Path) -> DataDirectory:
        """Open a directory that already holds a chain. The directory may be on read-only media."""
        refuse_foreign_data(path)
        if not (path / "database" / DATA_FILE).exists():
            raise StorageError(f"There is no chain in {path}.")
        with _explained(path):
            try:
                return cls(path, _locked(path, os.O_RDWR | os.O_CREAT))
            except OSError as error:
                if error.errno not in _UNWRITABLE:
                    raise
            # Read-only media cannot be locked and need no lock.
            return cls(path, None)

    @classmethod
    def beside_a_node(cls, path: Path) -> DataDirectory:
        """Open a directory to read its database. A node may be using the directory."""
        refuse_foreign_data(path)
        if not (path / "database" / DATA_FILE).exists():
            raise StorageError(f"There is no chain in {path}.")
        return cls(path, None)

    @property
    def database(self) -> Path:
        return self.path / "database"

    def key(self, config: DataConfig) -> tuple[PrivateKey, bool]:
        """Return the node's key and whether the key is new."""
        return load_or_create_key(config.key_file, password_file=config.node_private_key_password_file)

    def validator_key(self, config: DataConfig) -> PrivateKey | None:
        """Return the validator key, or None if the node's key signs blocks."""
        path = config.validator_private_key_file
        if path is None:
            return None
        return load_key(path, config.validator_private_key_password_file, VALIDATOR_PASSWORD_OPTION)

    def store(self, options: StorageConfig | None = None, *, read_only: bool = False) -> Store:
        """Return the database. The first call opens it; `close` of the directory closes it. All readers in this process
        share one object.
        """
        if self._store is None:
            with _explained(self.path):
                if not read_only:
                    self.database.mkdir(exist_ok=True)
                    forget_compaction(self.database)
                _check_layout(self.database, write=not read_only)
            durable = options is None or options.durable
            if read_only:
                # lazy import: the start of a node does not need this module
                from ophion.node.shared_store import SharedStore

                with _explained(self.path):
                    self._shared = SharedStore.open(self.database)
                self._store = self._shared.store
            else:
                try:
                    self._store = open_store(self.database, durable=durable)
                except StorageError as error:
                    from ophion.node.shared_store import opened_again

                    self._store = opened_again(error, self.database, durable=durable)
            if options is not None:
                self._store.set_state_cache(options.state_cache)
        return self._store

    def close_store(self) -> None:
        """Close the database; the directory stays open."""
        if self._shared is not None:
            self._shared.release()
            self._shared = None
        elif self._store is not None:
            self._store.close()
        self._store = None

    def close(self) -> None:
        """Close the database, then release the lock."""
        self.close_store()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> DataDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _close_to_others(path: Path, holds_program: bool) -> None:
    """Withdraw the permissions of group and others from the directory, its database and their files.

    With `holds_program`, withdraw them only from the key and the database. Skips symbolic links.
    """
    if holds_program and (path / "key").is_file() and not (path / "key").is_symlink():
        _tighten(path / "key")
    for place in (path / "database",) if holds_program else (path, path / "database"):
        if place.is_symlink() or not place.is_dir():
            continue
        for entry in os.scandir(place):
            if entry.is_file(follow_symlinks=False):
                _tighten(Path(entry.path))
        _tighten(place)


def _tighten(path: Path) -> None:
    mode = path.stat().st_mode
    if mode & _OTHERS:
        # if another user owns the file, leave its mode unchanged
        with suppress(PermissionError):
            path.chmod(mode & ~_OTHERS & 0o7777)


def refuse_in_use(path: Path) -> None:
    """Raise `StorageError` if a process uses this directory. The directory may be missing, and is not changed."""
    with suppress(OSError):
        os.close(_taken(path, os.O_RDONLY))


def _locked(path: Path, flags: int) -> int:
    descriptor = _taken(path, flags)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _taken(path: Path, flags: int) -> int:
    # do not follow symbolic links, because this code truncates the lock file
    descriptor = os.open(path / "lock", flags | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        os.close(descriptor)
        who = f"process {owner}" if owner.isdigit() else "another process"
        raise StorageError(
            f"The data path {path} is in use by {who}. Stop that process or choose another --data-path."
        ) from None
    return descriptor


def _check_layout(database: Path, write: bool) -> None:
    """Raise an error if the database has another layout version. In a new database, write the layout version."""
    metadata = database / "DATABASE_METADATA.json"
    try:
        content = metadata.read_bytes()
    except FileNotFoundError:
        if write:
            _mark(metadata)
        return
    version = _version(content, metadata)
    if version > LAYOUT_VERSION:
        raise StorageError(
            f"The database in {database} has version {version}; this Ophion reads version {LAYOUT_VERSION}."
            " Use the newer Ophion that wrote it, restore a backup made by this one, or use another --data-path."
        )
    if version < LAYOUT_VERSION:
        raise StorageError(f"The database in {database} was written by another program. Use another --data-path.")


def _version(content: bytes, metadata: Path) -> int:
    try:
        version = msgspec.json.decode(content)["version"]
    except (msgspec.DecodeError, ValueError, KeyError, TypeError, RecursionError):
        version = None
    if not isinstance(version, int) or isinstance(version, bool):
        raise StorageError(f'{metadata} is damaged: expected {{"version":{LAYOUT_VERSION}}}')
    return version


def compaction_of(database: Path) -> Path:
    """Return the directory in which `ophion storage compact` writes the new database."""
    return database / "compacted"


def forget_compaction(database: Path) -> None:
    """Remove the files of a killed compaction, which may be as large as the database."""
    folder = compaction_of(database)
    for name in (DATA_FILE, LOCK_FILE):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):  # the directory is missing, or contains files of the user
        folder.rmdir()


def mark_layout(database: Path) -> None:
    """Write the layout version of a database to its metadata file."""
    _mark(database / "DATABASE_METADATA.json")


def _mark(metadata: Path) -> None:
    temporary = metadata.with_suffix(".new")
    with temporary.open("w") as file:
        file.write(f'{{"version":{LAYOUT_VERSION}}}')
        file.flush()
        # flush the file, because after a power failure an empty file would make the database unusable
        os.fsync(file.fileno())
    temporary.replace(metadata)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn errors of the file system into one-line errors."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTDIR):
            reason = _IS_A_FILE
        elif error.errno == errno.ELOOP:
            reason = f"{error.filename} is a link"
        elif error.errno == errno.ENOSPC:
            reason = "the disk is full"
        elif error.errno in _UNWRITABLE:
            reason = f"it cannot be written ({error.strerror})"
        else:
            what = error.strerror or str(error)
            reason = what if error.filename in (None, str(path)) else f"{error.filename}: {what}"
        raise StorageError(f"The data path {path} cannot be used: {reason}.") from error

"""Exceptions of the extension, and their translation into `ophion.errors`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ophion import errors
from ophion._native import (
    DecodeError,
    InvalidBody,
    MissingState,
    NativeError,
    NotDownloaded,
    NotFetched,
    SourceFailed,
    StorageError,
    TimedOut,
    WireError,
)

__all__ = [
    "DecodeError",
    "InvalidBody",
    "MissingState",
    "NativeError",
    "NotDownloaded",
    "NotFetched",
    "SourceFailed",
    "StorageError",
    "TimedOut",
    "WireError",
    "as_ophion_error",
    "translated",
]


def as_ophion_error(error: NativeError) -> errors.OphionError:
    """Return the matching exception of `ophion.errors`."""
    message = str(error)
    if isinstance(error, StorageError):
        # LMDB reports a write that runs out of space midway as an input/output error
        hint = ": the disk is full, or it fails" if "(os error 5)" in message else ""
        return errors.StorageError(message + hint)
    if isinstance(error, MissingState):
        return errors.MissingStateError(message)
    if isinstance(error, DecodeError | WireError):
        return errors.DecodeError(message)
    if isinstance(error, NotDownloaded):
        return errors.BlockNotDownloaded(message)
    if isinstance(error, NotFetched):
        return errors.StateNotFetched(message)
    if isinstance(error, SourceFailed):
        return errors.ForkSourceError(message)
    if isinstance(error, InvalidBody):
        return errors.InvalidBlock(message)
    return errors.OphionError(message)


@contextmanager
def translated() -> Iterator[None]:
    """Translate exceptions of the extension to `OphionError`."""
    try:
        yield
    except NativeError as error:
        raise as_ophion_error(error) from error

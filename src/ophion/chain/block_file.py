"""Splits files of concatenated RLP blocks into blocks, without reading a whole file into memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from ophion.errors import CommandError, DecodeError
from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError

_CHUNK: Final = 1 << 20


def file_size(path: Path) -> int:
    """Return the size of a file to import. Raises `CommandError` when the file does not exist."""
    try:
        return path.stat().st_size if path.is_file() else _missing(path)
    except OSError as error:
        raise CommandError(f"Could not read file to import: {path}: {error.strerror}") from error


def _missing(path: Path) -> int:
    raise CommandError(f"Could not find file to import: {path}")


def split_blocks(file: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, RLP) of each block. `DecodeError` names file and offset of a truncated or malformed block.

    Only the length prefix of each block is decoded.
    """
    size = file_size(path)
    buffer = b""
    position = 0  # `position` is the position of the next block in the buffer
    offset = 0  # `offset` is the position of the next block in the file
    while offset < size:
        place = f"{path} at byte {offset}"
        needed = min(rlp.MAX_HEAD, size - offset)
        if len(buffer) - position < needed:
            buffer, position = _refilled(file, buffer[position:], needed, place), 0
        try:
            length = rlp.item_end(buffer, position) - position
        except RlpError as error:
            raise DecodeError(f"not a block: {error.problem}", place) from error
        if offset + length > size:
            raise DecodeError(f"the file ends inside a block of {length} bytes", place)
        if len(buffer) - position < length:
            buffer, position = _refilled(file, buffer[position:], length, place), 0
        yield offset, buffer[position : position + length]
        position += length
        offset += length


def _refilled(file: BinaryIO, rest: bytes, needed: int, place: str) -> bytes:
    """Return `rest` and the following bytes of the file, in total at least `needed` bytes."""
    pieces = [rest]
    have = len(rest)
    while have < needed:
        try:
            piece = file.read(max(_CHUNK, needed - have))
        except OSError as error:
            raise DecodeError(f"cannot be read: {error.strerror}", place) from error
        if not piece:
            raise DecodeError("the file became shorter while it was read", place)
        pieces.append(piece)
        have += len(piece)
    return b"".join(pieces)

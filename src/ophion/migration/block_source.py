"""`BlockSource`: the interface of all sources of blocks for a migration, such as a database of another client."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Protocol

from msgspec import Struct

from ophion.errors import CommandError, DecodeError
from ophion.primitives import rlp
from ophion.primitives.types import Hash32


class SourceHead(Struct, frozen=True):
    """Number and hash of the canonical head of a source."""

    number: int
    hash: Hash32


class BlockSource(Protocol):
    """A chain of another client. All methods raise `OphionError` when the source cannot be read."""

    @property
    def client(self) -> str:
        """Name of the client, for messages."""
        ...

    def head(self) -> SourceHead:
        """Return the head. A running node may have a new head at each call."""
        ...

    def hash_at(self, number: int) -> Hash32 | None:
        """Return the hash of the canonical block with this number, or None if the source has no such block."""
        ...

    def blocks(self, first: int, last: int) -> Iterator[bytes]:
        """Yield the RLP of the canonical blocks `first` to `last`, in order. A thread of the import calls this
        method.
        """
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


def join_block(header: bytes, body: bytes) -> bytes:
    """Join the RLP of a header and a body. The body is a list of transactions, ommers and, if present, withdrawals."""
    is_list, start, end = rlp.head(body, 0)
    if not is_list or end != len(body):
        raise DecodeError("not the RLP list of one block body")
    return rlp.list_of([header, body[start:end]])


def missing_block(client: str, number: int, part: str) -> CommandError:
    """Return the error for a block that is missing in a source."""
    return CommandError(
        f"{client} has no {part} of block {number}. It has pruned old blocks or has not fetched them (fast, snap or"
        " checkpoint sync). Migrate from a node that has every block."
    )


def optional_package(name: str, purpose: str) -> ModuleType:
    """Import a package of the extra `ophion[migrate]`. If the package is missing, `CommandError` says how to install
    it.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise CommandError(
            f"{purpose} needs the Python package {name.partition('.')[0]}. Install it: pip install 'ophion[migrate]'"
        ) from None

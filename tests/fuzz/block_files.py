"""Change or truncate a block file at every position, and check that each change is detected and reported.

    python -m tests.fuzz.block_files            every byte of the small chain, changed in three ways or truncated
    python -m tests.fuzz.block_files --every=50 every fiftieth byte

The script runs the real import in this process. The database already has the blocks before the changed block, and the
file contains only the changed and later blocks, so that an import takes milliseconds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chain.import_file import BlockFileImport
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CommandError, DecodeError, InvalidBlock, OphionError, UnknownParent
from ophion.native.store import open_store
from ophion.runtime.clock import SystemClock
from tests.fuzz import samples

_FLIPS = (0x01, 0x80, 0x55)
_FOLLOWING = 2
"""Number of blocks that follow the changed block in its file."""


@dataclass(slots=True)
class Spoiling:
    """Results of a run over all changed files."""

    files: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    """Number of changes that each rule detected."""
    unnoticed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kinds = "".join(f"\n{count:8} {kind}" for kind, count in self.kinds.most_common())
        return f"{self.files} spoilt files, {len(self.unnoticed)} unnoticed{''.join(self.unnoticed)}{kinds}"


def spoil_all(folder: Path, every: int, first: int = 0) -> Spoiling:
    """Change the small chain at every `every`-th byte, starting at `first`."""
    blocks = samples.blocks()
    seen = Spoiling()
    file = folder / "blocks.rlp"
    offset = 0
    with opened_chain(folder) as chain:
        for position, block in enumerate(blocks):
            rest = b"".join(blocks[position + 1 : position + 1 + _FOLLOWING])
            for at in range((first - offset) % every, len(block), every):
                for what, content in _spoilt(block, at, rest, every > 1):
                    file.write_bytes(content)
                    _judge(chain, file, f"{what} byte {at} of block {position}", seen)
            file.write_bytes(block)
            import_file(chain, file)
            assert chain.head.number == position
            offset += len(block)
    return seen


@contextmanager
def opened_chain(folder: Path) -> Iterator[Chain]:
    """Open a new database with the genesis of the small chain."""
    genesis = parse_genesis(samples.GENESIS)
    store = open_store(folder / "database", durable=False)
    try:
        yield Chain.open(store, genesis, engine_for(genesis.spec))
    finally:
        store.close()


def import_file(chain: Chain, file: Path) -> None:
    """Import a file in the same way as `ophion blocks import`."""
    BlockFileImport(ImportCore(chain, SystemClock()), SystemClock()).run([file])


def _spoilt(block: bytes, at: int, rest: bytes, sampled: bool) -> Iterator[tuple[str, bytes]]:
    flips = (_FLIPS[at % len(_FLIPS)],) if sampled else _FLIPS
    for flip in flips:
        yield f"changed by {flip:#x}:", block[:at] + bytes((block[at] ^ flip,)) + block[at + 1 :] + rest
    if at > 0:
        yield "cut before", block[:at]


def _judge(chain: Chain, file: Path, what: str, seen: Spoiling) -> None:
    before = chain.store.head()
    seen.files += 1
    try:
        import_file(chain, file)
    except OphionError as error:
        seen.kinds[_kind(error, file)] += 1
        assert chain.store.head() == before, f"{what}: the head moved, though {error}"
        return
    seen.unnoticed.append(f"\n{what}")


def _kind(error: OphionError, file: Path) -> str:
    """Return the rule that an import error names. Raises AssertionError if the error does not name the position."""
    message = str(error)
    assert message.isprintable(), message
    if isinstance(error, InvalidBlock):
        assert "at block number " in message, message
        return error.rule.partition(": ")[0]
    if isinstance(error, DecodeError):
        assert message.startswith(f"{file} at byte "), message
        return "".join(letter for letter in message.removeprefix(str(file)).split(": ", 1)[1] if not letter.isdigit())
    assert isinstance(error, UnknownParent | CommandError), repr(error)
    return type(error).__name__


def main() -> int:
    """Run the command of the module docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seen = spoil_all(Path(folder), given.every)
    print(seen)
    return 1 if seen.unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Imports RLP blocks from files or another source, with three threads.

The reader splits the file into blocks, decodes them and recovers senders on all cores. The reader stays a bounded
number of transactions ahead. The caller's thread verifies and executes each block on the state of its parent. The
writer commits batches of thousands of transactions, with one disk flush each, while the next batch executes. Sizes of
chunks and batches bound the memory. A killed import loses at most two batches; the next run continues after the last
stored block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from ophion.chain.block import decode_block, peek_header
from ophion.chain.block_file import file_size, split_blocks
from ophion.chain.block_import import ImportBatch, ImportCore
from ophion.chain.events import ChainBlock
from ophion.errors import CommandError, DecodeError, OphionError
from ophion.native.exceptions import InvalidBody, translated
from ophion.primitives import rlp
from ophion.primitives.types import Hash32
from ophion.runtime.clock import Clock

_CHUNK_BLOCKS: Final = 64
_CHUNK_TRANSACTIONS: Final = 1_000
_CHUNK_BYTES: Final = 4 << 20
_CHUNKS_AHEAD: Final = 3
_BATCH_BLOCKS: Final = 256
_BATCH_TRANSACTIONS: Final = 4_000
_BATCH_S: Final = 1.0

Locate: TypeAlias = Callable[[int], str]
"""Returns a description of a block's position, for error messages."""


class ImportProgress(Struct):
    """Numbers of blocks that an import has processed so far."""

    blocks: int = 0
    """Number of imported blocks. Blocks that were known before do not count."""
    known: int = 0
    """Number of blocks skipped because they are known."""
    outside: int = 0
    """Number of blocks skipped because they are out of range."""
    transactions: int = 0
    gas: int = 0
    number: int = 0
    """Number of the last block that the import has processed."""
    bytes_done: int = 0
    bytes_total: int = 0


class _Ready(Struct, frozen=True):
    """Result of preparing one block: the block with recovered senders, or None if the import skips the block."""

    block: ChainBlock | None
    number: int
    end: int
    """Position in the source where the next block begins."""


class _Chunk(Struct, frozen=True):
    """Consecutive blocks, and the error that follows the last block, if any."""

    blocks: list[_Ready]
    error: OphionError | None
    is_last: bool


class BlockFileImport:
    """Imports files of blocks, one after the other."""

    def __init__(
        self,
        core: ImportCore,
        clock: Clock,
        on_progress: Callable[[ImportProgress], None] | None = None,
        first: int = 0,
        last: int | None = None,
        on_commit: Callable[[], None] | None = None,
    ) -> None:
        """Create the import of blocks `first` to `last` (inclusive).

        Calls `on_progress` after each block and `on_commit` after each batch.
        """
        self._core = core
        self._clock = clock
        self._on_progress = on_progress
        self._first = first
        self._last = last
        self._on_commit = on_commit
        self._progress = ImportProgress()
        self._batch_blocks = 0
        self._batch_transactions = 0
        self._batch_started = 0.0
        self._writer: ThreadPoolExecutor | None = None
        self._writing: tuple[ImportBatch, Future[None]] | None = None

    def run(self, paths: Sequence[Path]) -> ImportProgress:
        """Import the files. Blocks before an invalid block remain imported.

        Raises `InvalidBlock`, `UnknownParent`, `DecodeError` with file and offset, `CommandError` or `StorageError`.
        """
        self._progress.bytes_total = sum(file_size(path) for path in paths)
        done = 0
        with self._writing_thread():
            for path in paths:
                self._import_file(path, done)
                done += file_size(path)
        return self._progress

    def run_blocks(self, blocks: Iterable[tuple[int, bytes]], locate: Locate) -> ImportProgress:
        """Import (position, RLP) pairs of another source. A thread reads ahead.

        Raises the errors of `run`, and any `OphionError` of the source.
        """
        with self._writing_thread():
            self._import(blocks, 0, locate)
        return self._progress

    @contextmanager
    def _writing_thread(self) -> Iterator[None]:
        with ThreadPoolExecutor(1, thread_name_prefix="write") as self._writer:
            try:
                yield
            except OphionError:
                self._finish()
                raise
            self._finish()

    def _import_file(self, path: Path, done: int) -> None:
        try:
            file = path.open("rb")
        except OSError as error:
            raise CommandError(f"Could not read file to import: {path}: {error.strerror}") from error
        with file:
            self._import(split_blocks(file, path), done, lambda offset: f"{path} at byte {offset}")

    def _import(self, blocks: Iterable[tuple[int, bytes]], done: int, locate: Locate) -> None:
        with closing(_decoded_ahead(self._prepared(blocks, locate))) as chunks:
            for chunk in chunks:
                for ready in chunk.blocks:
                    self._take(ready)
                    self._progress.bytes_done = done + ready.end
                    if self._on_progress is not None:
                        self._on_progress(self._progress)
                if chunk.error is not None:
                    raise chunk.error

    def _take(self, ready: _Ready) -> None:
        self._progress.number = ready.number
        if self._is_passed_over(ready.number):
            self._progress.outside += 1
            return
        if ready.block is None or self._core.is_known(ready.block.header.hash):
            self._progress.known += 1
            return
        if not self._batch_blocks:
            self._batch_started = self._clock.monotonic()
        block = ready.block
        self._core.stage(block.header, block.body)
        count = block.body.transaction_count
        self._progress.blocks += 1
        self._progress.transactions += count
        self._progress.gas += block.header.header.gas_used
        self._batch_blocks += 1
        self._batch_transactions += count
        if (
            self._batch_transactions >= _BATCH_TRANSACTIONS
            or self._batch_blocks >= _BATCH_BLOCKS
            or self._clock.monotonic() - self._batch_started >= _BATCH_S
        ):
            self._flush()

    def _flush(self) -> None:
        """Wait until the writer has written the previous batch, then pass the staged blocks to the writer."""
        self._await_writer()
        batch = self._core.detach()
        if batch is not None:
            assert self._writer is not None, "made by `run`"
            self._writing = batch, self._writer.submit(self._core.write, batch)
        self._batch_blocks = 0
        self._batch_transactions = 0

    def _finish(self) -> None:
        self._flush()
        self._await_writer()

    def _await_writer(self) -> None:
        if self._writing is not None:
            (batch, written), self._writing = self._writing, None
            written.result()
            if batch.change is not None:
                self._core.chain.advance(batch.change, {})
                if self._on_commit is not None:
                    self._on_commit()

    # --- everything below runs in the reader's thread ---

    def _prepared(self, source: Iterable[tuple[int, bytes]], locate: Locate) -> Iterator[_Chunk]:
        blocks: list[_Ready] = []
        transactions = size = 0
        try:
            for offset, raw in source:
                ready = self._ready(raw, offset, locate)
                blocks.append(ready)
                size += len(raw)
                transactions += 0 if ready.block is None else ready.block.body.transaction_count
                if transactions >= _CHUNK_TRANSACTIONS or len(blocks) >= _CHUNK_BLOCKS or size >= _CHUNK_BYTES:
                    self._look_ahead(blocks)
                    yield _Chunk(blocks, None, is_last=False)
                    blocks, transactions, size = [], 0, 0
        except OphionError as error:
            # yield the blocks before the error, so that they are imported before the error is raised
            yield _Chunk(blocks, error, is_last=True)
            return
        yield _Chunk(blocks, None, is_last=True)

    def _look_ahead(self, blocks: Sequence[_Ready]) -> None:
        headers = [ready.block.header for ready in blocks if ready.block is not None]
        self._core.chain.engine.look_ahead(headers)

    def _ready(self, raw: bytes, offset: int, locate: Locate) -> _Ready:
        engine = self._core.chain.engine
        end = offset + len(raw)
        try:
            header = peek_header(raw, engine)
            if self._is_passed_over(header.number) or self._is_known(header.number, header.hash, raw):
                return _Ready(None, header.number, end)
            block = decode_block(raw, engine)
        except DecodeError as error:
            raise DecodeError(f"not a block: {error}", locate(offset)) from error
        # ignore an invalid signature here, because execution reports it after the header is verified
        with suppress(InvalidBody):
            block.body.recover()
        return _Ready(block, header.number, end)

    def _is_passed_over(self, number: int) -> bool:
        return number < self._first or (self._last is not None and number > self._last)

    def _is_known(self, number: int, block_hash: Hash32, raw: bytes) -> bool:
        chain = self._core.chain
        if number == 0 and block_hash != chain.genesis.hash:
            raise CommandError(
                f"The file belongs to another chain: its block 0 is 0x{block_hash.hex()}, the genesis of this "
                f"network is 0x{chain.genesis.hash.hex()}."
            )
        with translated():
            stored = chain.store.block(block_hash)
        if stored is None:
            return False
        # two headers with the same hash may differ in their seals, but a different body means that the file is damaged
        if _after_header(stored) != _after_header(raw):
            raise DecodeError(f"the body does not belong to block {number}, which is known already")
        return True


def _after_header(block: bytes) -> bytes:
    return block[rlp.item_end(block, rlp.head(block, 0)[1]) :]


def _decoded_ahead(chunks: Iterator[_Chunk]) -> Generator[_Chunk, None, None]:
    """Yield decoded chunks in order, while a thread decodes further chunks."""
    executor = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
    pending: deque[Future[_Chunk]] = deque()
    try:
        pending.extend(executor.submit(_next, chunks) for _ in range(_CHUNKS_AHEAD))
        while True:
            chunk = pending.popleft().result()
            pending.append(executor.submit(_next, chunks))
            yield chunk
            if chunk.is_last:
                return
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _next(chunks: Iterator[_Chunk]) -> _Chunk:
    # after the last chunk, `next` returns its default value, which the caller does not read
    return next(chunks, _Chunk([], None, is_last=True))

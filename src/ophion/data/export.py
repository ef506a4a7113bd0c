"""Exports datasets to files: writes missing files and verifies existing files."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct

from ophion.data.arrow import arrow_schema
from ophion.data.dataset_types import Column, Dataset, Source
from ophion.data.export_target import Target, UnfinishedFile, Written
from ophion.data.manifest import DatasetEntry, FileEntry, Manifest
from ophion.data.parquet import ParquetFile, append_tables
from ophion.data.read_ahead import read_ahead
from ophion.data.selection import Format, Rows, columns_of
from ophion.data.table_reader import TableRead, TableReader
from ophion.data.task_threads import Task, TaskThreads
from ophion.data.writers import WRITERS, FileFormat
from ophion.errors import CommandError
from ophion.runtime.clock import Clock, SystemClock

T = TypeVar("T")

DEFAULT_BLOCKS_PER_FILE: Final = 10_000
_SAVE_EVERY_S: Final = 2.0
_UNPUBLISHED_JOBS: Final = 2
"""Maximum number of unpublished jobs per worker: jobs being written, and jobs that wait for the disk or an upload."""

_STORED_RANGES_WAITING: Final = 2
"""Number of ranges of stored blocks that are read, in addition to one for each worker, before the first one is
written. With fewer, a thread that reads may wait for the thread that writes.
"""


class ExportPlan(Struct, frozen=True):
    """Settings of an export: datasets, formats, conditions on rows and the size of files."""

    datasets: tuple[Dataset, ...]
    file_format: FileFormat = FileFormat.PARQUET
    format: Format = Format()
    rows: Rows = Rows()
    blocks_per_file: int = DEFAULT_BLOCKS_PER_FILE
    workers: int = 2

    @property
    def hex(self) -> bool:
        """Whether byte strings are written as hexadecimal text."""
        return self.format.hex or self.file_format.is_text

    def columns(self, dataset: Dataset) -> tuple[Column, ...]:
        """Return the columns that the files of this dataset have."""
        return columns_of(dataset, self.format)

    def settings(self, dataset: Dataset) -> dict[str, Any]:
        """Return the settings that all files of a dataset must share."""
        return {
            "format": self.file_format.value,
            "hex": self.hex,
            "columns": [column.name for column in self.columns(dataset)],
            "address": [one.hex() for one in self.rows.addresses],
            "topic": [None if any is None else [one.hex() for one in any] for any in self.rows.topics],
            "from": [one.hex() for one in self.rows.senders],
            "recipient": [one.hex() for one in self.rows.recipients],
            "blocks per file": self.blocks_per_file,
        }


class ExportResult(Struct):
    """Numbers of files and rows of an export."""

    files: int = 0
    rows: int = 0
    size: int = 0
    verified: int = 0
    """Number of intact files of an earlier run."""
    replaced: int = 0
    """Number of files of an earlier run that were written again. The files were missing or changed, or their blocks
    were replaced.
    """


class _Job(Struct, frozen=True):
    """Files to write: one for each dataset, of the same blocks."""

    datasets: tuple[Dataset, ...]
    first: int
    last: int


class _JobFile(Struct):
    """A file of a job."""

    path: str
    file: UnfinishedFile
    rows: int = 0
    publishing: Task[Written] | None = None
    """Publishes the file in another thread; None while the file is being written."""


class _WrittenJob(Struct, frozen=True):
    """The files of a job. All are written; other threads publish them."""

    files: list[_JobFile]
    last_hash: str


class _Threads(NamedTuple):
    """The threads of one run, in addition to the threads that run write jobs."""

    scans: TaskThreads
    """Read tables and encode the ends of files."""
    publishers: TaskThreads
    """Flush files to the disk, or upload them."""
    recorders: TaskThreads
    """Threads that wait until all files of a job are published."""


OnProgress = Callable[[int, int, int], None]
"""Receives the number of finished blocks, the number of all blocks, and the number of rows so far."""


class Export:
    """One run of an export over a range of blocks."""

    def __init__(
        self,
        reader: TableReader,
        target: Target,
        plan: ExportPlan,
        on_progress: OnProgress | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._reader = reader
        self._target = target
        self._plan = plan
        self._on_progress = on_progress
        self._clock = SystemClock() if clock is None else clock
        self._is_stopped = threading.Event()
        self._recording = threading.Lock()
        self._done = 0
        genesis = reader.block(0)
        self._manifest = Manifest.load(target, reader.chain_id, "" if genesis is None else genesis.hash.hex())
        self._saved = self._clock.monotonic()
        for dataset in plan.datasets:
            plan.rows.check(dataset)
            self._manifest.dataset(dataset.name, plan.settings(dataset))

    @property
    def manifest(self) -> Manifest:
        """The manifest: the list of finished files."""
        return self._manifest

    def run(self, first: int, last: int, verify: bool = True) -> ExportResult:
        """Export blocks `first` to `last`. With `verify`, first check the files of earlier runs. After an interruption,
        every finished file remains.
        """
        result = ExportResult()
        jobs: list[_Job] = []
        if verify:
            self._delete_unlisted()
        for dataset in self._plan.datasets:
            entry = self._manifest.dataset(dataset.name, self._plan.settings(dataset))
            if verify:
                self._verify(entry, result)
            jobs.extend(self._jobs(dataset, entry, first, last))
        jobs = self._together(jobs)
        self._done = 0
        try:
            self._write_all(jobs, result)
        finally:
            self._manifest.save(self._target)
        return result

    def compact(self, last: int) -> int:
        """Join the part files of each partition that ends at or before block `last`. Returns the number of
        new files.
        """
        joined = 0
        for dataset in self._plan.datasets:
            entry = self._manifest.datasets[dataset.name]
            for first, parts in self._partitions(entry).items():
                end = first + self._plan.blocks_per_file - 1
                is_whole = parts[0].first == first and parts[-1].last == end
                if len(parts) > 1 and is_whole and end <= last:
                    self._join(dataset, entry, parts)
                    joined += 1
        return joined

    def _together(self, jobs: list[_Job]) -> list[_Job]:
        """Merge jobs for the same blocks if their datasets need the execution of these blocks, so that each block
        executes only once. Returns the jobs in the order of their first blocks.
        """
        merged: dict[tuple[int, int], list[Dataset]] = {}
        alone = []
        for job in jobs:
            (dataset,) = job.datasets
            if self._is_replayed(dataset):
                merged.setdefault((job.first, job.last), []).append(dataset)
            else:
                alone.append(job)
        alone.extend(_Job(tuple(datasets), first, last) for (first, last), datasets in merged.items())
        return sorted(alone, key=lambda job: job.first)

    def _is_replayed(self, dataset: Dataset) -> bool:
        """Whether this process executes the blocks of a dataset."""
        return dataset.source is Source.EXECUTED and self._table_read(dataset) is not None

    def _partitions(self, entry: DatasetEntry) -> dict[int, list[FileEntry]]:
        found: dict[int, list[FileEntry]] = {}
        for file in sorted(entry.files, key=lambda file: file.first):
            found.setdefault(file.first - file.first % self._plan.blocks_per_file, []).append(file)
        return found

    def _join(self, dataset: Dataset, entry: DatasetEntry, parts: list[FileEntry]) -> None:
        """Export the blocks of the part files again into one file, add this file to the manifest, then delete the
        parts.
        """
        job = _Job((dataset,), parts[0].first, parts[-1].last)
        with self._threads() as threads:
            (whole,) = self._published(job, self._write(job, threads))
        entry.files = [file for file in entry.files if file not in parts]
        entry.files.append(whole)
        self._manifest.save(self._target)
        for part in parts:
            self._target.delete(part.path)

    def _delete_unlisted(self) -> None:
        """Delete files that the manifest does not list. A killed process may leave such files."""
        for dataset in self._plan.datasets:
            listed = {file.path for file in self._manifest.datasets[dataset.name].files}
            for path in self._target.list(dataset.name):
                if path not in listed:
                    self._target.delete(path)

    def _jobs(self, dataset: Dataset, entry: DatasetEntry, first: int, last: int) -> Iterator[_Job]:
        """Yield one file to write for each range of missing blocks in each partition."""
        size = self._plan.blocks_per_file
        for start, end in entry.missing(first, last):
            while start <= end:
                stop = min(end, start - start % size + size - 1)
                yield _Job((dataset,), start, stop)
                start = stop + 1

    def _verify(self, entry: DatasetEntry, result: ExportResult) -> None:
        """Keep the files that are intact and whose blocks are still canonical. Delete all other files of the
        dataset.
        """
        kept = []
        for file in entry.files:
            found = self._target.checksum(file.path)
            block = self._reader.block(file.last)
            is_intact = found is not None and (found.size, found.crc32) == (file.size, file.crc32)
            if is_intact and block is not None and block.hash.hex() == file.last_hash:
                kept.append(file)
            else:
                self._target.delete(file.path)
                result.replaced += 1
        entry.files = kept
        result.verified += len(kept)

    def _write_all(self, jobs: list[_Job], result: ExportResult) -> None:
        total = sum(job.last - job.first + 1 for job in jobs for _ in job.datasets)
        unpublished = threading.Semaphore(_UNPUBLISHED_JOBS * self._plan.workers)
        # execute blocks for one job at a time: one job uses all processors, and two jobs would need twice the memory
        replaying = threading.Lock()
        with self._threads() as threads, TaskThreads(self._plan.workers, "export-write") as writers:

            def write(job: _Job) -> Task[None]:
                unpublished.acquire()
                try:
                    with replaying if self._is_replayed(job.datasets[0]) else nullcontext():
                        written = self._write(job, threads)
                except BaseException:
                    unpublished.release()
                    raise
                return threads.recorders.submit(lambda: record(job, written))

            def record(job: _Job, written: _WrittenJob) -> None:
                try:
                    self._record(job, self._published(job, written), result)
                finally:
                    unpublished.release()

            running = [writers.submit(lambda job=job: write(job)) for job in jobs]  # type: ignore[misc]
            publishing: deque[Task[None]] = deque()
            try:
                for task in writers.completed(running):
                    publishing.append(task.result())
                    while publishing and publishing[0].is_done:
                        publishing.popleft().result()
                        self._report(result, total)
                for published in publishing:
                    published.result()
                    self._report(result, total)
            except BaseException:
                self._is_stopped.set()
                self._reader.stop()
                for task in running:
                    task.cancel()
                raise

    @contextmanager
    def _threads(self) -> Iterator[_Threads]:
        workers = self._plan.workers
        with (
            TaskThreads(workers, "export-scan") as scans,
            TaskThreads(_UNPUBLISHED_JOBS * workers, "export-publish") as publishers,
            TaskThreads(_UNPUBLISHED_JOBS * workers, "export-record") as recorders,
        ):
            yield _Threads(scans, publishers, recorders)

    def _record(self, job: _Job, entries: list[FileEntry], result: ExportResult) -> None:
        """Add published files to the manifest, which the next save writes."""
        with self._recording:
            for dataset, file in zip(job.datasets, entries, strict=True):
                self._manifest.datasets[dataset.name].files.append(file)
                result.files += 1
                result.rows += file.rows
                result.size += file.size
                self._done += job.last - job.first + 1

    def _report(self, result: ExportResult, total: int) -> None:
        if self._on_progress is not None:
            self._on_progress(self._done, total, result.rows)
        self._save_sometimes()

    def _save_sometimes(self) -> None:
        now = self._clock.monotonic()
        if now - self._saved >= _SAVE_EVERY_S:
            with self._recording:
                self._manifest.save(self._target)
            self._saved = now

    def _table_read(self, dataset: Dataset) -> TableRead | None:
        is_parquet = self._plan.file_format is FileFormat.PARQUET
        return self._reader.table_read(dataset) if is_parquet else None

    def _write(self, job: _Job, threads: _Threads) -> _WrittenJob:
        """Write the files of a job, and let other threads publish each file when it is written. After an error, no file
        of the job is left.
        """
        last = self._reader.block(job.last)
        if last is None:
            raise CommandError(f"Block {job.last} is not part of the chain any more.")
        files: list[_JobFile] = []
        try:
            for dataset in job.datasets:
                path = file_path(dataset, job.first, job.last, self._plan)
                files.append(_JobFile(path, self._target.create(path)))
            self._fill(job, files, threads)
        except BaseException:
            self._discard(files)
            raise
        return _WrittenJob(files, last.hash.hex())

    def _published(self, job: _Job, written: _WrittenJob) -> list[FileEntry]:
        """Wait until the files of a job are published. After an error, no file of the job is left."""
        entries = []
        try:
            for file in written.files:
                assert file.publishing is not None, "the file is written"
                found = file.publishing.result()
                entry = FileEntry(file.path, job.first, job.last, written.last_hash, file.rows, found.size, found.crc32)
                entries.append(entry)
        except BaseException:
            self._discard(written.files)
            raise
        return entries

    def _discard(self, files: Sequence[_JobFile]) -> None:
        """Delete files, published or not, after the error of one file. Errors of the other files are not reported."""
        for file in files:
            if file.publishing is None:
                file.file.discard()
                continue
            with suppress(Exception):
                file.publishing.result()
                self._target.delete(file.path)

    def _fill(self, job: _Job, files: Sequence[_JobFile], threads: _Threads) -> None:
        """Write all rows of a job to its files."""
        plan = self._plan
        tables = [(dataset, plan.columns(dataset)) for dataset in job.datasets]
        dataset, columns = tables[0]
        read = self._table_read(dataset)
        if read is not None:
            writers = [
                ParquetFile(file.file.file, dataset, columns, plan.hex, plan.workers)
                for file, (dataset, columns) in zip(files, tables, strict=True)
            ]
            append_tables(
                writers,
                self._scanned(job, threads.scans, lambda first, last: read(tables, first, last, plan.rows, plan.hex)),
            )
            _finish(list(zip(files, writers, strict=True)), threads)
            return
        (file,) = files
        batches = self._scanned(
            job,
            threads.scans,
            lambda first, last: self._reader.batches(dataset, columns, first, last, plan.rows, plan.hex),
        )
        schema = arrow_schema(dataset, columns, plan.hex)
        file.rows = WRITERS[plan.file_format](file.file.file, schema, columns, batches)
        file.publishing = threads.publishers.submit(file.file.publish)

    def _scanned(self, job: _Job, scans: TaskThreads, reads: Callable[[int, int], Iterator[T]]) -> Iterator[T]:
        """Read ranges ahead in other threads; yield their tables or batches in order."""

        def read(first: int, last: int) -> Iterator[T]:
            self._check_running()
            for item in reads(first, last):
                yield item
                del item
                self._check_running()

        ranges = self._reader.ranges(job.datasets[0], job.first, job.last)
        # tables of executed blocks are larger
        waiting = 1 if self._is_replayed(job.datasets[0]) else _STORED_RANGES_WAITING
        for item in read_ahead(ranges, read, self._plan.workers, scans, waiting):
            self._check_running()
            yield item
            del item

    def _check_running(self) -> None:
        if self._is_stopped.is_set():
            raise CommandError("The export was interrupted.")


def file_path(dataset: Dataset, first: int, last: int, plan: ExportPlan) -> str:
    """Return the path of a file: the directory of its partition, then a name with the block range."""
    start = first - first % plan.blocks_per_file
    return f"{dataset.name}/from={start:08d}/part-{first:08d}-{last:08d}.{plan.file_format.value}"


def _finish(files: Sequence[tuple[_JobFile, ParquetFile]], threads: _Threads) -> None:
    """Finish Parquet files, several at a time and the largest first. Each is published while others are encoded."""

    def finish(file: _JobFile, writer: ParquetFile) -> None:
        writer.finish()
        file.rows = writer.rows
        file.publishing = threads.publishers.submit(file.file.publish)

    largest = sorted(files, key=lambda one: one[1].held_bytes, reverse=True)
    threads.scans.run_all([partial(finish, file, writer) for file, writer in largest])

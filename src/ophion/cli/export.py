"""`ophion export`: datasets of the chain as Parquet, Arrow, CSV or JSON lines."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from ophion.cli.command import Command, CommandSession
from ophion.cli.progress import Progress
from ophion.cli.url_option import read_url
from ophion.data.dataset_types import Dataset
from ophion.data.datasets import DECODED, datasets_named
from ophion.data.export import DEFAULT_BLOCKS_PER_FILE, Export, ExportPlan, ExportResult
from ophion.data.export_target import open_target
from ophion.data.optional_packages import require
from ophion.data.selection import NUMBER_FORMS, Format, Rows
from ophion.data.table_reader import TableReader
from ophion.data.writers import FileFormat
from ophion.errors import CommandError, ConfigError
from ophion.node.datadir import DataConfig
from ophion.node.network import NetworkConfig, is_default_genesis, load_genesis
from ophion.runtime.garbage_collection import settle_down
from ophion.runtime.interrupts import StopSignals
from ophion.runtime.options import Options, at_least, option

_NICENESS = 10
"""Process niceness of an export that follows the chain, so that a node on the same machine has priority."""


def _topic(text: str) -> tuple[int, bytes]:
    position, _, topic = text.rpartition(":")
    if position not in ("", "0", "1", "2", "3"):
        raise ValueError(f"expected POSITION:TOPIC with a position from 0 to 3 but was '{text}'")
    return int(position or 0), _hex(32, "a topic")(topic)


def _hex(length: int, what: str) -> Callable[[str], bytes]:
    def read(text: str) -> bytes:
        try:
            found = bytes.fromhex(text.removeprefix("0x"))
        except ValueError:
            found = b""
        if len(found) != length:
            raise ValueError(f"expected {what} of {length} bytes in hexadecimal but was '{text}'")
        return found

    return read


def _number_form(text: str) -> str:
    if text not in NUMBER_FORMS:
        raise ValueError(f"expected one of [{', '.join(NUMBER_FORMS)}] but was '{text}'")
    return text


class ExportOptions(Options):
    """Options: source, target, blocks and row filters of `ophion export`."""

    target: str = option("--to", metavar="DIRECTORY|URL", help="Directory to write, or a URL that fsspec knows.")
    datasets: tuple[str, ...] = option(
        "--datasets",
        default=("blocks", "transactions", "logs"),
        help="Datasets, separated by commas; `state_diffs` stands for four of them (docs/data.md).",
    )
    rpc: str | None = option(
        "--rpc",
        default=None,
        parse=read_url("http", "https"),
        metavar="URL",
        help="Read from a node over JSON-RPC instead of --data-path.",
    )
    start_block: int = option("--start-block", default=0, check=at_least(0), help="First block to export.")
    end_block: int | None = option(
        "--end-block", default=None, check=at_least(1), help="First block not to export. (default: after the head)"
    )
    addresses: tuple[bytes, ...] = option(
        "--address", default=(), parse=_hex(20, "an address"), help="Only logs of these contracts, only these accounts."
    )
    topics: tuple[tuple[int, bytes], ...] = option(
        "--topic",
        default=(),
        parse=_topic,
        metavar="[POSITION:]TOPIC",
        help="Only logs with this topic; without a position it is the first one, which names the event.",
    )
    senders: tuple[bytes, ...] = option(
        "--from", default=(), parse=_hex(20, "an address"), help="Only transactions and calls of these accounts."
    )
    recipients: tuple[bytes, ...] = option(
        "--recipient", default=(), parse=_hex(20, "an address"), help="Only transactions and calls to these accounts."
    )
    numbers: tuple[str, ...] = option(
        "--u256",
        default=("binary",),
        parse=_number_form,
        help="Forms of 256-bit numbers: binary, string, f64, decimal; each form is a column.",
    )
    hex: bool = option("--hex", default=False, help="Write byte strings as hexadecimal text.")
    blocks_per_file: int = option(
        "--blocks-per-file", default=DEFAULT_BLOCKS_PER_FILE, check=at_least(1), help="Blocks of one partition."
    )
    workers: int | None = option(
        "--workers", default=None, check=at_least(1), help="Threads that read and write. (default: one per core)"
    )

    abi: Path | None = option(
        "--abi",
        default=None,
        metavar="DIRECTORY|FILE",
        help="ABIs of solc, Hardhat or Foundry for the datasets `events` and `calls`: one table each.",
    )
    follow: bool = option(
        "--follow", default=False, help="Go on with new blocks when they are final, and join small files."
    )
    final_depth: int | None = option(
        "--final-depth",
        default=None,
        check=at_least(0),
        help="Blocks upon a block before --follow exports it. (default: 0 under IBFT and QBFT, 64 elsewhere)",
    )

    def rows(self) -> Rows:
        """Return the filter of rows that the options describe."""
        count = max((position + 1 for position, _ in self.topics), default=0)
        by_position = [tuple(topic for at, topic in self.topics if at == position) for position in range(count)]
        return Rows(self.addresses, tuple(any or None for any in by_position), self.senders, self.recipients)


def _reader(options: ExportOptions, session: CommandSession) -> TableReader:
    if options.rpc is not None:
        from ophion.data.rpc_reader import RpcReader

        return RpcReader(options.rpc)
    from ophion.data.database_reader import DatabaseReader

    network = session.part(NetworkConfig)
    return DatabaseReader(
        session.part(DataConfig).data_path, lambda: load_genesis(network), is_default_genesis(network)
    )


def _run(options: ExportOptions, session: CommandSession, file_format: FileFormat) -> int:
    """Export missing files and verify existing files."""
    if options.end_block is not None and options.end_block <= options.start_block:
        raise ConfigError(
            f"--end-block ({options.end_block}) must be greater than --start-block ({options.start_block})"
        )
    if not options.datasets:
        raise ConfigError("--datasets names no dataset")
    with closing(_reader(options, session)) as stored:
        names = tuple(name for name in options.datasets if name not in DECODED)
        plain = datasets_named(names) if names else ()
        reader, decoded = _decoding(options, stored)
        datasets = (*plain, *decoded)
        if file_format is not FileFormat.PARQUET or any(reader.table_read(one) is None for one in datasets):
            require("pyarrow.parquet")
        code = _export(options, file_format, reader, datasets)
    # exempt all objects from the garbage collection at exit, so that the interpreter ends faster
    settle_down()
    return code


def _decoding(options: ExportOptions, reader: TableReader) -> tuple[TableReader, tuple[Dataset, ...]]:
    """Return a reader that adds the decoded datasets named in the options, and a list of these datasets."""
    kinds = {DECODED[name] for name in options.datasets if name in DECODED}
    if not kinds:
        return reader, ()
    if options.abi is None:
        raise ConfigError("The datasets events and calls need contract ABIs: --abi=DIRECTORY")
    from ophion.data.abi_files import load_abis
    from ophion.data.decoded_datasets import DecodingReader

    entries = load_abis(options.abi, kinds)
    if not entries:
        raise CommandError(f"The ABIs in {options.abi} have no {' and no '.join(sorted(kinds))}.")
    decoding = DecodingReader(reader, entries)
    return decoding, tuple(decoding.datasets.values())


def _export(options: ExportOptions, file_format: FileFormat, reader: TableReader, datasets: tuple[Dataset, ...]) -> int:
    workers = options.workers or os.cpu_count() or 1
    plan = ExportPlan(
        datasets=datasets,
        file_format=file_format,
        format=Format(options.numbers, options.hex),
        rows=options.rows(),
        blocks_per_file=options.blocks_per_file,
        workers=workers,
    )
    last = reader.head().number
    if options.end_block is not None:
        last = min(last, options.end_block - 1)
    if options.start_block > last:
        raise CommandError(f"There is no block {options.start_block} to export: the head is block {last}.")
    reader.prepare(datasets)
    progress: Progress | None = None

    def show(done: int, total: int, rows: int) -> None:
        nonlocal progress
        progress = progress or Progress("Blocks", total)
        seconds = max(progress.elapsed(), 1e-3)
        left = (total - done) * seconds / max(done, 1)
        progress.update(done, f"{rows / seconds:,.0f} rows/s, {left:.0f} s left")

    if options.follow:
        return _follow(options, reader, plan)
    began = time.monotonic()
    export = Export(reader, open_target(options.target), plan, show)
    try:
        result = export.run(options.start_block, last)
    except KeyboardInterrupt:
        if progress is not None:
            progress.clear()
        print("Interrupted; finished files are complete, and the same command continues.", file=sys.stderr)
        raise
    if progress is not None:
        progress.clear()
    _report(result, options, last, time.monotonic() - began)
    return 0


def _follow(options: ExportOptions, reader: TableReader, plan: ExportPlan) -> int:
    """Export final blocks until SIGINT or SIGTERM."""
    from ophion.data.continuous_export import Follower

    with suppress(OSError):
        os.nice(_NICENESS)
    finality = reader.finality()
    depth = finality.depth if options.final_depth is None else options.final_depth
    print(f"Following the chain with a depth of {depth} blocks ({finality.reason}). Ctrl-C ends it.", flush=True)
    ends = StopSignals(signal.SIGINT, signal.SIGTERM)

    def report(last: int, result: ExportResult) -> None:
        print(f"exported last={last} rows={result.rows} files={result.files}", flush=True)

    export = Export(reader, open_target(options.target), plan)
    follower = Follower(export, reader, depth, lambda seconds: not ends.wait(seconds))
    follower.run(options.start_block, report)
    return 0


def _report(result: ExportResult, options: ExportOptions, last: int, seconds: float) -> None:
    print(
        f"Exported {result.rows:,} rows in {result.files} files ({result.size:,} bytes, {seconds:.3f} s) of blocks"
        f" {options.start_block} to {last} to {options.target}"
    )
    if result.verified or result.replaced:
        print(f"Verified {result.verified} files of earlier runs; {result.replaced} were replaced.")


def _command(file_format: FileFormat, what: str) -> Command:
    def run(options: ExportOptions, session: CommandSession) -> int:
        return _run(options, session, file_format)

    name = file_format.value
    return Command(
        name,
        f"Write datasets of the chain as {what}.",
        run,
        ExportOptions,
        uses=(DataConfig, NetworkConfig),
        examples=(
            f"ophion export {name} --data-path=data --datasets=blocks,transactions,logs --to=tables",
            f"ophion export {name} --rpc=http://localhost:8545 --datasets=logs --to=tables",
        ),
    )


COMMANDS = (
    _command(FileFormat.PARQUET, "Parquet files"),
    _command(FileFormat.ARROW, "Arrow files"),
    _command(FileFormat.CSV, "CSV files"),
    _command(FileFormat.NDJSON, "files of JSON lines"),
)

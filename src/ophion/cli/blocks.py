"""`ophion blocks import` and `ophion blocks export`: files of concatenated RLP blocks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from ophion.chain import export_file
from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chain.import_file import BlockFileImport, ImportProgress
from ophion.chain.pruning import PruningRounds
from ophion.cli.command import Command, CommandSession
from ophion.cli.progress import Progress
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CommandError, ConfigError, OphionError
from ophion.native.exceptions import NativeError, translated
from ophion.node.access_options import AccessConfig
from ophion.node.datadir import DataConfig, DataDirectory
from ophion.node.network import NetworkConfig, load_genesis
from ophion.node.privacy import check_no_private_states
from ophion.node.storage_options import StorageConfig
from ophion.node.validator_contract import read_contracts
from ophion.producer.block_script import BlockScript
from ophion.runtime.clock import SystemClock
from ophion.runtime.options import Options, at_least, option

_LINE_EVERY_S = 1.0


class BlockFormat(Enum):
    """Format of a block file."""

    RLP = "rlp"
    JSON = "json"


class BlockImportOptions(Options):
    """Options: files, range and checks of `ophion blocks import`."""

    files: tuple[Path, ...] = option("--from", help="File of blocks; may be given several times.")
    skip_pow: bool = option(
        "--skip-pow-validation-enabled",
        default=False,
        help="Do not verify proof-of-work seals, for chains that were produced without work.",
    )
    start_block: int = option("--start-block", default=0, check=at_least(0), help="First block to import.")
    end_block: int | None = option(
        "--end-block", default=None, check=at_least(0), help="First block not to import. (default: to the end)"
    )
    format: BlockFormat = option(
        "--format",
        default=BlockFormat.RLP,
        hidden=True,
        help="RLP blocks, or a JSON description of blocks to produce, for tests.",
    )

    run: bool = option("--run", default=False, hidden=True, help="Refused: start the node after the import.")


def import_blocks(options: BlockImportOptions, session: CommandSession) -> int:
    """Verify, execute and store the blocks of RLP files; known blocks are skipped. For JSON files, make the described
    blocks.
    """
    if options.run:
        raise ConfigError("--run is not supported: after the import, start the node with the same options.")
    if options.format is BlockFormat.JSON and (options.start_block or options.end_block is not None):
        raise ConfigError("--start-block and --end-block belong to files of RLP blocks.")
    if options.end_block is not None and options.end_block <= options.start_block:
        raise ConfigError(
            f"--end-block ({options.end_block}) must be greater than --start-block ({options.start_block})"
        )
    network, data = session.part(NetworkConfig), session.part(DataConfig)
    if not options.files:
        raise ConfigError("Invalid value for option '--from': the path is empty")
    for file in options.files:
        if not file.exists():
            raise CommandError(f"Could not find file to import: {file}")
        if not file.is_file():
            raise CommandError(f"Could not find file to import: {file} (it is a directory, a pipe or a device)")
    genesis = load_genesis(network)
    for warning in genesis.warnings:
        print(f"Warning: {warning}", file=sys.stderr)
    engine = engine_for(genesis.spec, verifies_work=not options.skip_pow)
    storage = session.part(StorageConfig)
    with DataDirectory.open(data.data_path) as directory:
        chain = Chain.open(directory.store(storage), genesis, engine)
        upkeep = _upkeep(chain, storage.states_kept)
        try:
            if options.format is BlockFormat.JSON:
                _make(options, chain, upkeep)
            else:
                _run(options, chain, session.part(AccessConfig).revert_reason_enabled, upkeep)
        finally:
            if not storage.durable:
                chain.store.sync()
    return 0


def _upkeep(chain: Chain, states_kept: int | None) -> Callable[[], None] | None:
    """Return the pruning step that runs after each commit, or None if the node keeps every state."""
    if states_kept is None:
        return None
    check_no_private_states(chain.store)
    rounds = PruningRounds(chain.store, states_kept)
    return lambda: rounds.catch_up(chain.head.number)


def _run(options: BlockImportOptions, chain: Chain, keeps_revert_data: bool, upkeep: Callable[[], None] | None) -> None:
    clock = SystemClock()
    progress = Progress("Bytes", sum(file.stat().st_size for file in options.files), line_s=_LINE_EVERY_S)
    seen = ImportProgress()

    def show(now: ImportProgress) -> None:
        nonlocal seen
        seen = now
        progress.update(now.bytes_done, f"block {now.number}, {_rate(now.blocks, progress.elapsed())} blocks/s")

    last = None if options.end_block is None else options.end_block - 1
    core = ImportCore(chain, clock, keeps_revert_data)
    read_contracts(chain, core.state_after)
    work = BlockFileImport(core, clock, show, options.start_block, last, upkeep)
    try:
        seen = work.run(options.files)
    except KeyboardInterrupt:
        progress.line(f"Interrupted; the same command continues from {_head(chain)}")
        raise
    except (OphionError, NativeError):
        progress.line(f"Stopped; blocks up to the head are stored: {_head(chain)}")
        raise
    progress.clear()
    _report(seen, progress.elapsed(), chain)


def _make(options: BlockImportOptions, chain: Chain, upkeep: Callable[[], None] | None) -> None:
    """Produce blocks from descriptions in files. Each file continues the chain of the previous file."""
    clock = SystemClock()
    script = BlockScript(ImportCore(chain, clock), clock, not options.skip_pow, upkeep)
    began, done = clock.monotonic(), ImportProgress()
    for file in options.files:
        done = script.run(file.read_bytes())
    _report(done, clock.monotonic() - began, chain)


def _report(done: ImportProgress, seconds: float, chain: Chain) -> None:
    passed = f", {done.known:,} known already" if done.known else ""
    passed += f", {done.outside:,} outside the range" if done.outside else ""
    print(f"Imported {done.blocks:,} blocks with {done.transactions:,} transactions in {seconds:.2f} s{passed}")
    if done.blocks:
        speed = f"{_rate(done.transactions, seconds)} transactions/s, {done.gas / max(seconds, 1e-9) / 1e6:,.0f} Mgas/s"
        print(f"Gas {done.gas / 1e6:,.1f} M; {speed}")
    print(f"Head is {_head(chain)}")


def _rate(count: int, seconds: float) -> str:
    return f"{count / max(seconds, 1e-9):,.0f}"


def _head(chain: Chain) -> str:
    return f"block {chain.head.number} (0x{chain.head.hash.hex()})"


class BlockExportOptions(Options):
    """Options: the file and block range of `ophion blocks export`."""

    target: Path = option("--to", help="File to write.")
    start_block: int | None = option(
        "--start-block",
        default=None,
        check=at_least(0),
        help="First block to export; with this option the command appends to the file. (default: 0)",
    )
    end_block: int | None = option(
        "--end-block", default=None, check=at_least(0), help="First block not to export. (default: after the head)"
    )


def export_blocks(options: BlockExportOptions, session: CommandSession) -> int:
    """Write the canonical blocks to a file."""
    start = options.start_block or 0
    if options.end_block is not None and options.end_block <= start:
        raise ConfigError(f"--end-block ({options.end_block}) must be greater than --start-block ({start})")
    with DataDirectory.open_existing(session.part(DataConfig).data_path) as directory, translated():
        progress: Progress | None = None

        def show(done: int, total: int) -> None:
            nonlocal progress
            progress = progress or Progress("Blocks", total)
            progress.update(done)

        store = directory.store(read_only=True)
        count = export_file.export_blocks(store, options.target, options.start_block, options.end_block, show)
        if progress is not None:
            progress.clear()
    print(f"Exported {count:,} blocks ({start} to {start + count - 1}) to {options.target}")
    return 0


COMMANDS = (
    Command(
        "import",
        "Import files of RLP blocks, as this and other Ethereum clients export them.",
        import_blocks,
        BlockImportOptions,
        uses=(DataConfig, NetworkConfig, StorageConfig),
        also_reads=(AccessConfig,),
        examples=(
            "ophion blocks import --from=chain.rlp --genesis-file=genesis.json --data-path=data",
            "ophion blocks import --from=first.rlp --from=second.rlp --skip-pow-validation-enabled",
        ),
    ),
    Command(
        "export",
        "Write the canonical blocks to a file.",
        export_blocks,
        BlockExportOptions,
        uses=(DataConfig,),
        examples=(
            "ophion blocks export --to=chain.rlp --data-path=data",
            "ophion blocks export --to=chain.rlp --start-block=100 --end-block=200",
        ),
    ),
)

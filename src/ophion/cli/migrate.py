"""`ophion migrate`: moves a chain of another client, with its key and configuration, into a new data directory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.cli.command import Command, CommandSession
from ophion.cli.migrate_private import PRIVATE
from ophion.cli.node_client import read_token
from ophion.cli.progress import Progress
from ophion.cli.untrusted_text import escape_untrusted
from ophion.cli.url_option import read_url
from ophion.consensus.engine import Engine
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CommandError, ConfigError, OphionError
from ophion.migration.block_source import BlockSource
from ophion.migration.chain_migration import ChainMigration, MigrationResult
from ophion.migration.config_translation import translate_config
from ophion.migration.node_files import BESU_LAYOUT, GETH_LAYOUT, OldLayout, Takeover, take_over
from ophion.migration.rlp_file import RlpFileSource
from ophion.migration.rpc_source import RpcSource
from ophion.native.exceptions import NativeError
from ophion.node.datadir import DataConfig, DataDirectory
from ophion.node.network import NetworkConfig, load_genesis
from ophion.node.storage_options import StorageConfig
from ophion.node.validator_contract import read_contracts
from ophion.runtime.blocking_json_rpc import JsonRpcClient
from ophion.runtime.clock import SystemClock
from ophion.runtime.options import Options, at_least, option, problems_of

_LINE_EVERY_S: Final = 1.0
_LINKS: Final = "source-links"
_COMPARE_HEAD: Final = "The newest blocks may be missing: compare the head with that of the old node."
_ONE_SOURCE: Final = "Give one source: --from-besu=DIR, --from-geth=DIR, --from-rlp=FILE or --rpc=URL."


class MigrateOptions(Options):
    """Options: source and comparison of `ophion migrate`."""

    besu: Path | None = option("--from-besu", default=None, metavar="DIRECTORY", help="Data path of a stopped Besu.")
    geth: Path | None = option(
        "--from-geth", default=None, metavar="DIRECTORY", help="Data directory of a stopped geth or GoQuorum."
    )
    ancient: Path | None = option(
        "--from-geth-ancient",
        default=None,
        metavar="DIRECTORY",
        help="Freezer of geth (its --datadir.ancient), where it lies outside the data directory.",
    )
    rlp_file: Path | None = option("--from-rlp", default=None, help="File of RLP blocks that the old node exported.")
    rpc: str | None = option(
        "--rpc",
        default=None,
        metavar="URL",
        parse=read_url("http", "https"),
        help="JSON-RPC of the running old node.",
    )
    token_file: Path | None = option("--token-file", default=None, help="File with a token for the old node.")
    config: Path | None = option(
        "--from-config",
        default=None,
        help="Configuration file of Besu to translate. (default: config.toml in its data path)",
    )
    compare: bool = option(
        "--compare",
        "--rehearse",
        default=False,
        help="Migrate nothing: compare random answers of two running nodes, --old and --new.",
    )
    old: str | None = option(
        "--old",
        default=None,
        metavar="URL",
        parse=read_url("http", "https"),
        help="Comparison: JSON-RPC of the old node.",
    )
    new: str | None = option(
        "--new", default=None, metavar="URL", parse=read_url("http", "https"), help="Comparison: JSON-RPC of Ophion."
    )
    samples: int = option(
        "--samples", default=1000, check=at_least(1), help="Comparison: number of answers to compare."
    )
    seed: int | None = option(
        "--seed", default=None, check=at_least(0), help="Comparison: repeat the calls of an earlier run."
    )
    skip_pow: bool = option(
        "--skip-pow-validation-enabled",
        default=False,
        help="Do not verify proof-of-work seals, for chains that were produced without work.",
    )

    def problems(self) -> Iterator[str]:
        if self.compare:
            if self.old is None or self.new is None:
                yield "--compare needs --old=URL and --new=URL."
        elif sum(source is not None for source in (self.besu, self.geth, self.rlp_file, self.rpc)) != 1:
            yield _ONE_SOURCE
        if self.config is not None and self.besu is None:
            yield "--from-config belongs to --from-besu: only files of Besu are translated."
        if self.ancient is not None and self.geth is None:
            yield "--from-geth-ancient belongs to --from-geth."

    @property
    def directory(self) -> tuple[Path, OldLayout] | None:
        """The old data directory with its layout, or None if the source is not a directory."""
        if self.besu is not None:
            return self.besu, BESU_LAYOUT
        return None if self.geth is None else (self.geth, GETH_LAYOUT)


def migrate(options: MigrateOptions, session: CommandSession) -> int:
    """Import and verify all blocks and copy keys and configuration. With --compare, compare two running nodes."""
    if problems := problems_of(options):
        raise ConfigError(problems)
    if options.compare:
        from ophion.cli.migrate_comparison import compare_nodes

        assert options.old is not None, "checked by `problems`"
        assert options.new is not None, "checked by `problems`"
        return compare_nodes(options.old, options.new, options.samples, options.seed, read_token(options.token_file))
    target = session.part(DataConfig).data_path
    old = options.directory
    if old is not None:
        _refuse_nested(old[0], target)
    genesis = load_genesis(session.part(NetworkConfig))
    for warning in genesis.warnings:
        print(f"Warning: {warning}", file=sys.stderr)
    if options.config is not None:
        translate_config(options.config, target)  # report mistakes before the import, which may take hours
    engine = engine_for(genesis.spec, verifies_work=not options.skip_pow)
    storage = session.part(StorageConfig)
    with DataDirectory.open(target) as directory, closing(_open_source(options, engine, target)) as source:
        chain = Chain.open(directory.store(storage), genesis, engine)
        try:
            done, seconds = _import(source, chain)
        finally:
            if not storage.durable:
                chain.store.sync()
        taken = None if old is None else take_over(*old, target, options.config)
    if taken is not None:
        _print_takeover(taken)
    print(
        f"Imported {done.blocks:,} blocks with {done.transactions:,} transactions in {seconds:.2f} s"
        f" ({done.blocks / max(seconds, 1e-9):,.0f} blocks/s)"
    )
    print(f"head {done.head.number} 0x{done.head.hash.hex()} equals {source.client}'s")
    return 0


def _refuse_nested(source: Path, target: Path) -> None:
    if not source.is_dir():
        raise CommandError(f"There is no directory {source}.")
    old, new = source.resolve(), target.resolve()
    if new == old or old in new.parents:
        raise ConfigError(f"--data-path ({target}) lies in the old data directory, which stays unchanged. Use another.")


def _open_source(options: MigrateOptions, engine: Engine, target: Path) -> BlockSource:
    if options.besu is not None:
        from ophion.migration.besu import BesuSource

        source = BesuSource(options.besu, target / _LINKS)
        if source.warning is not None:
            print(f"Warning: {source.warning}. {_COMPARE_HEAD}", file=sys.stderr)
        return source
    if options.geth is not None:
        from ophion.migration.geth import GethSource

        return GethSource(options.geth, options.ancient)
    if options.rlp_file is not None:
        return RlpFileSource(options.rlp_file, engine)
    if options.rpc is not None:
        return RpcSource(JsonRpcClient(options.rpc, read_token(options.token_file)), engine)
    raise ConfigError(_ONE_SOURCE)


def _import(source: BlockSource, chain: Chain) -> tuple[MigrationResult, float]:
    clock = SystemClock()
    core = ImportCore(chain, clock)
    read_contracts(chain, core.state_after)
    head = source.head()
    print(
        f"{source.client} has head {head.number} 0x{head.hash.hex()}; importing from block {chain.head.number}",
        flush=True,
    )
    progress = Progress("Blocks", head.number, line_s=_LINE_EVERY_S)
    work = ChainMigration(source, core, clock, _shown(progress))
    work.check_genesis()
    try:
        done = work.run()
    except KeyboardInterrupt:
        progress.line(f"Interrupted; the same command continues from block {chain.head.number}")
        raise
    except (OphionError, NativeError):
        progress.line(f"Stopped at block {chain.head.number}; the same command continues there")
        raise
    progress.clear()
    return done, progress.elapsed()


def _shown(progress: Progress) -> Callable[[int, int, int], None]:
    def show(first: int, number: int, last: int) -> None:
        seconds = max(progress.elapsed(), 1e-9)
        rate = max(number - first + 1, 1) / seconds
        progress.update(number, f"{rate:,.0f} blocks/s, {_duration((last - number) / rate)} left")

    return show


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _print_takeover(taken: Takeover) -> None:
    for file in taken.files:
        print(f"{escape_untrusted(file.name)}: {escape_untrusted(file.outcome)}")
    if taken.config is not None:
        print(f"{taken.config.source}:")
        for line in taken.config.lines:
            print(f"  {escape_untrusted(line.key)}: {escape_untrusted(line.outcome)}")
    print("To do by hand:")
    for entry in taken.by_hand:
        print(f"  - {escape_untrusted(entry)}")


COMMANDS = (
    Command(
        "migrate",
        "Move a chain of Besu, geth or GoQuorum into a new data directory; every block is verified and executed.",
        migrate,
        MigrateOptions,
        uses=(DataConfig, NetworkConfig, StorageConfig),
        examples=(
            "ophion migrate --from-besu=old --data-path=data --genesis-file=genesis.json",
            "ophion migrate --from-geth=old --data-path=data --genesis-file=genesis.json",
            "ophion migrate --rpc=http://127.0.0.1:8545 --data-path=data --genesis-file=genesis.json",
            "ophion migrate --compare --old=http://127.0.0.1:8545 --new=http://127.0.0.1:9545",
        ),
    ),
    PRIVATE,
)

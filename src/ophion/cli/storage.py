"""`ophion storage`: size, integrity, backup and compaction of the database."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from ophion.cli.command import Command, CommandSession, NoOptions
from ophion.cli.progress import Progress
from ophion.cli.replaced_commands import STORAGE_COMMANDS
from ophion.enclave.key_loading import DEFAULT_KEY_FILE
from ophion.errors import StorageError
from ophion.native.exceptions import translated
from ophion.node.checkpoint.location import is_archive_name
from ophion.node.database_copy import CopyResult, CopyStep, OnProgress, back_up, compact, damage, remove_copy
from ophion.node.datadir import DataConfig, DataDirectory
from ophion.runtime.operator_files import force_directory
from ophion.runtime.options import Options, at_least, option

_MAX_FINDINGS = 100
_NICENESS = 15


def usage(options: NoOptions, session: CommandSession) -> int:
    """Print the size of each table. A node may use the database at the same time."""
    path = session.part(DataConfig).data_path
    with DataDirectory.beside_a_node(path) as directory, translated():
        rows = directory.store(read_only=True).usage()
        on_disk = (directory.database / "data.mdb").stat().st_blocks * 512
    rows = sorted(rows, key=lambda row: -row[2])
    width = max([len("on disk"), *(len(name) for name, _, _ in rows)])
    print(f"{'table':<{width}}  {'entries':>12}  {'size':>10}")
    for name, entries, size in rows:
        print(f"{name:<{width}}  {entries:>12,}  {show_size(size):>10}")
    print(f"{'total':<{width}}  {sum(row[1] for row in rows):>12,}  {show_size(sum(row[2] for row in rows)):>10}")
    print(f"{'on disk':<{width}}  {'':>12}  {show_size(on_disk):>10}")
    return 0


def check(options: NoOptions, session: CommandSession) -> int:
    """Check the hashes of blocks, of the head's state, of private states and of payloads."""
    path = session.part(DataConfig).data_path
    with DataDirectory.open_existing(path) as directory, translated():
        store = directory.store(read_only=True)
        with _shown() as on_progress:
            findings = damage(store, _MAX_FINDINGS, on_progress)
        head = store.head()
    for finding in findings:
        print(finding)
    if findings:
        more = " or more" if len(findings) >= _MAX_FINDINGS else ""
        print(f"{len(findings)}{more} damaged")
        return 1
    print("The database is empty." if head is None else f"No damage found up to block {head[1]} (0x{head[0].hex()}).")
    return 0


class BackupOptions(Options):
    """Options: target, rate and checks of `ophion storage backup`."""

    target: Path = option(
        "--to",
        metavar="DIRECTORY",
        help="Data path to create; it must not exist. To restore, start a node with it or with a copy of it. A name"
        " that ends in .tar or .tar.gz makes an archive, for --sync-checkpoint of a new node.",
    )
    max_rate: int = option(
        "--max-rate", default=64, check=at_least(0), help="Maximum MiB to copy per second; 0 for no limit."
    )
    latest_state_only: bool = option(
        "--latest-state-only",
        default=False,
        help="Leave out older states, side blocks and private data: a much smaller backup, for --sync-checkpoint of a"
        " new node.",
    )
    checks: bool = option(
        "--check", default=True, help="Check the copy like `storage check` before giving it its final name."
    )


def backup(options: BackupOptions, session: CommandSession) -> int:
    """Copy the database. A node may use the database at the same time."""
    data = session.part(DataConfig)
    os.nice(_NICENESS)  # lower the priority of the backup, so that the node runs first
    with _shown() as on_progress:
        began = time.monotonic()
        copied = _back_up(data.data_path, options, on_progress)
    seconds = time.monotonic() - began
    print(f"Copied {show_size(copied.size)} in {seconds:.1f} s{' and found no damage' if options.checks else ''}.")
    print(f"{options.target} holds the chain up to block {copied.number} (0x{copied.hash.hex()}).")
    # name the key file only if it is in the data directory, because this command does not read --node-private-key-file
    key = data.key_file if data.key_file.exists() else "it"
    print(f"The node's key is not part of it: store {key} separately in a safe place.")
    enclave_key = data.data_path / DEFAULT_KEY_FILE
    if enclave_key.exists():
        print(f"Nor is the key of the enclave, without which no private payload can be opened: {enclave_key}")
    return 0


def _back_up(data_path: Path, options: BackupOptions, on_progress: OnProgress) -> CopyResult:
    """Write the backup. An archive, and a backup of only the latest state, are made from a full copy in a temporary
    directory beside the target.
    """
    target, rate = options.target, options.max_rate << 20
    if not is_archive_name(target) and not options.latest_state_only:
        return back_up(data_path, target, rate, options.checks, on_progress)
    # lazy import: most backups are plain copies and need neither module
    from ophion.node.checkpoint.archive import write_archive
    from ophion.node.checkpoint.removal import remove_rest

    if target.exists():
        raise StorageError(f"{target} exists. Name a file or directory that does not exist yet.")
    folder = target.with_name(target.name + ".unpacked")
    remove_copy(folder)  # remove the copy of an interrupted backup
    try:
        # do not check a backup of only the latest state here, because `compact` checks it
        checks = options.checks and not options.latest_state_only
        copied = back_up(data_path, folder, rate, checks, on_progress)
        if options.latest_state_only:
            with DataDirectory.open(folder) as directory, translated():
                remove_rest(directory.store(), lambda removed: None)
                _, copied = compact(directory, on_progress)
        if is_archive_name(target):
            return structs.replace(copied, size=write_archive(folder, target))
        folder.rename(target)
        force_directory(target.parent)
        return copied
    except OSError as error:
        raise StorageError(f"The backup {target} cannot be written: {error.strerror or error}.") from error
    finally:
        remove_copy(folder)


def compact_database(options: NoOptions, session: CommandSession) -> int:
    """Rewrite the database without free pages. No node may use the database at the same time."""
    path = session.part(DataConfig).data_path
    with DataDirectory.open_existing(path) as directory, _shown() as on_progress:
        before, copied = compact(directory, on_progress)
    print(f"{show_size(before)} became {show_size(copied.size)}; no damage found up to block {copied.number}.")
    return 0


@contextmanager
def _shown() -> Iterator[OnProgress]:
    """Return a callback that shows a progress bar for each step, in MiB copied or entries checked."""
    shown: dict[CopyStep, Progress] = {}

    def on_progress(step: CopyStep, done: int, total: int) -> None:
        what, unit, shift = ("Copied", "MiB", 20) if step is CopyStep.COPYING else ("Checked", "entries", 0)
        if step not in shown:
            clear()
            shown[step] = Progress(what, total >> shift)
        shown[step].update(min(done, total) >> shift, unit)

    def clear() -> None:
        for progress in shown.values():
            progress.clear()

    try:
        yield on_progress
    finally:
        clear()


def show_size(size: int) -> str:
    """Format a number of bytes: 4096 is `4.0 KiB`."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


COMMANDS = (
    Command(
        "usage",
        "Show the size of the database by table. Works while the node runs.",
        usage,
        uses=(DataConfig,),
        examples=("ophion storage usage --data-path=data",),
    ),
    Command(
        "check",
        "Check all hashes of the chain and of the head's state, and report damage.",
        check,
        uses=(DataConfig,),
        examples=("ophion storage check --data-path=data",),
    ),
    Command(
        "backup",
        "Copy the database to a new data path and check the copy. Works while the node runs.",
        backup,
        BackupOptions,
        uses=(DataConfig,),
        examples=("ophion storage backup --data-path=data --to=backups/monday",),
    ),
    Command(
        "compact",
        "Rewrite the database without free pages to free disk space. The node must not run.",
        compact_database,
        uses=(DataConfig,),
        examples=("ophion storage compact --data-path=data",),
    ),
    *STORAGE_COMMANDS,
)

"""`ophion evm`: runs files or folders of the public Ethereum test vectors on all cores.

State and transaction tests run in threads, because the Rust extension releases the GIL. Block tests run in processes,
because the import of blocks is Python code.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

from ophion.cli.command import Command, CommandSession, NoOptions
from ophion.cli.progress import Progress
from ophion.errors import CommandError, ConfigError, OphionError
from ophion.native import vectors
from ophion.native.exceptions import NativeError
from ophion.vectors.block_test import run_file
from ophion.vectors.outcome import Outcome

Run = Callable[[Path], list[Outcome]]
NativeRunner = Callable[[bytes], list[tuple[str, str, bool | None, str]]]


def state_test(options: NoOptions, session: CommandSession) -> int:
    """Run GeneralStateTests: a transaction on a state."""
    return _run(session, partial(_native, vectors.state_test), ThreadPoolExecutor)


def transaction_test(options: NoOptions, session: CommandSession) -> int:
    """Run TransactionTests: valid and invalid transactions by fork."""
    return _run(session, partial(_native, vectors.transaction_test), ThreadPoolExecutor)


def block_test(options: NoOptions, session: CommandSession) -> int:
    """Run BlockchainTests: chains with valid and invalid blocks."""
    processes = partial(ProcessPoolExecutor, mp_context=multiprocessing.get_context("spawn"))
    return _run(session, _blocks, processes)


def _native(run: NativeRunner, path: Path) -> list[Outcome]:
    try:
        return [Outcome(str(path), *outcome) for outcome in run(path.read_bytes())]
    except (OSError, NativeError) as error:
        return [Outcome(str(path), "", "", False, str(error))]


def _blocks(path: Path) -> list[Outcome]:
    try:
        return run_file(path)
    except (OphionError, NativeError) as error:
        return [Outcome(str(path), "", "", False, str(error))]


def files_of(words: Sequence[str]) -> list[Path]:
    """Return the JSON files that the arguments name, without duplicates. Folders are searched recursively."""
    if not words:
        raise ConfigError("Missing required argument: PATH…")
    found: dict[Path, None] = {}
    for word in words:
        path = Path(word)
        if path.is_dir():
            found.update(dict.fromkeys(sorted(entry for entry in path.rglob("*.json") if entry.is_file())))
        elif path.is_file():
            found[path] = None
        else:
            raise CommandError(f"Could not find test file or folder: {word}")
    if not found:
        raise CommandError(f"There is no JSON file in {', '.join(words)}")
    return list(found)


def _run(session: CommandSession, run: Run, pool: Callable[..., Executor]) -> int:
    files = files_of(session.words)
    workers = min(os.cpu_count() or 1, len(files))
    counts: Counter[bool | None] = Counter()
    skips: Counter[str] = Counter()
    progress = Progress("Files", len(files))
    with pool(max_workers=workers) as executor:
        try:
            for done, outcomes in enumerate(_mapped(executor, run, files), 1):
                for outcome in outcomes:
                    counts[outcome.passed] += 1
                    if not outcome.passed:
                        progress.clear()
                        print(_line(outcome))
                    if outcome.passed is None:
                        skips[outcome.detail] += 1
                progress.update(done)
        except BrokenProcessPool:
            raise CommandError("A worker process died; its tests could not be finished.") from None
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            raise
    progress.clear()
    for reason, count in sorted(skips.items()):
        print(f"{count} skipped: {reason}")
    print(f"{counts[True]} passed, {counts[False]} failed, {counts[None]} skipped")
    return 1 if counts[False] else 0


def _mapped(executor: Executor, run: Run, files: Sequence[Path]) -> Iterator[Iterable[Outcome]]:
    """Yield outcomes in the order of the files, so that two runs can be compared."""
    return executor.map(run, files, chunksize=4)


def _line(outcome: Outcome) -> str:
    kind = "SKIPPED" if outcome.passed is None else "FAILED"
    where = " ".join(part for part in (outcome.file, outcome.case, outcome.fork) if part)
    return f"{kind} {where}: {outcome.detail}"


def _command(name: str, kind: str, folder: str, run: Callable[[NoOptions, CommandSession], int]) -> Command:
    return Command(
        name,
        f"Run {kind}: one line for each failure and each skip, the counts last.",
        run,
        words="PATH…",
        examples=(f"ophion evm {name} {folder}", f"ophion evm {name} {folder}/one.json {folder}/two.json"),
    )


COMMANDS = (
    _command("state-test", "state tests", "GeneralStateTests", state_test),
    _command("block-test", "block tests", "BlockchainTests", block_test),
    _command("transaction-test", "transaction tests", "TransactionTests", transaction_test),
)

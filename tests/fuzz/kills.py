"""Kills imports at random moments (SIGKILL) and checks the database after each kill.

    python -m tests.fuzz.kills --kills=50 [--seed=N] [--genesis-file=G --from=FILE]

Without files, it uses the chain in ../shared/bench/clique-30k if present, else a generated chain.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.conftest import SHARED
from tests.data.small_chain.make import make_chain
from tests.fuzz.samples import split_blocks
from tests.integration.command import OPHION, environment, ophion

_LONG_BLOCKS, _LONG_TRANSACTIONS = 800, 3


@dataclass(frozen=True, slots=True)
class ChainFiles:
    """A chain as files."""

    genesis: Path
    blocks: Path

    def command(self, data: Path) -> list[str]:
        """Return the arguments of the import."""
        return [
            "blocks",
            "import",
            f"--from={self.blocks}",
            f"--genesis-file={self.genesis}",
            f"--data-path={data}",
        ]


@dataclass(slots=True)
class Kills:
    """Results of a series of kills."""

    kills: int = 0
    rounds: int = 0
    """Number of complete imports; each begins with an empty data path."""
    heads: list[int] = field(default_factory=list)
    """Head after each kill; -1 if the database is missing or empty."""
    last: str = ""
    """Final head, as the command shows it."""

    def __str__(self) -> str:
        found = Counter("no chain" if head < 0 else f"block {head}" for head in self.heads)
        seen = ", ".join(f"{where} {count}×" for where, count in found.most_common(12))
        return f"{self.kills} kills in {self.rounds} imports; head after a kill: {seen}; in the end {self.last}"


def shared_chain() -> ChainFiles | None:
    """Return the benchmark chain, if the public data is present."""
    folder = SHARED / "bench" / "clique-30k"
    return ChainFiles(folder / "genesis.json", folder / "blocks.rlp") if folder.exists() else None


def made_chain(folder: Path) -> ChainFiles:
    """Make a chain long enough for several write transactions and a second of work."""
    return ChainFiles(*make_chain(folder, _LONG_BLOCKS, _LONG_TRANSACTIONS))


def kill_imports(chain: ChainFiles, folder: Path, kills: int, seed: int) -> Kills:
    """Kill imports. Raises AssertionError if a killed import damages the database, loses blocks, or cannot be
    continued.
    """
    source = random.Random(seed)
    done = Kills()
    reach = _timed_import(chain, folder / "whole")
    head = _head_shown(_import(chain, folder / "whole"))
    data = folder / "0"
    last = -1
    # a kill before the first write transaction tests little, so repeat until one kill hits a later moment
    while done.kills < kills or (max(done.heads) <= 0 and done.kills < 5 * kills):
        if _killed(chain.command(data), source.uniform(0.02, reach)):
            done.kills += 1
            found = _checked_head(data)
            assert found >= last, f"the head was block {last} and is block {found}"
            done.heads.append(found)
            # the import made no progress before the kill, so allow more time until the next kill
            reach *= 1.2 if found == last else 1
            last = found
            continue
        reach *= 0.8
        _finish(chain, data, head)
        done.rounds += 1
        data, last = folder / str(done.rounds), -1
    _finish(chain, data, head)
    done.rounds += 1
    done.last = head
    return done


def _timed_import(chain: ChainFiles, data: Path) -> float:
    started = time.monotonic()
    _import(chain, data)
    return time.monotonic() - started


def _import(chain: ChainFiles, data: Path) -> str:
    return ophion(*chain.command(data), timeout_s=600).succeeded().out


def _head_shown(out: str) -> str:
    return next(line for line in out.splitlines() if line.startswith("Head is ")).removeprefix("Head is ")


def _killed(arguments: list[str], after_s: float) -> bool:
    """Start a command and kill it. Returns False if the command ended before the kill."""
    process = subprocess.Popen(
        [*OPHION, *arguments], env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        code = process.wait(after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        return process.wait() == -signal.SIGKILL
    assert code == 0
    return False


def _checked_head(data: Path) -> int:
    """Return the head of an undamaged database; -1 if the database has no blocks yet."""
    done = ophion("storage", "check", f"--data-path={data}", timeout_s=600)
    if "here is no chain in" in done.err:
        return -1
    if "The database is empty." in done.succeeded().out:
        return -1
    assert "No damage found up to block " in done.out
    return int(done.out.partition("up to block ")[2].split()[0])


def _finish(chain: ChainFiles, data: Path, head: str) -> None:
    """Import the rest without kills. Checks that the final head is `head`, no block is missing and the database is
    undamaged.
    """
    assert _head_shown(_import(chain, data)) == head
    assert f"No damage found up to {head}." in ophion("storage", "check", f"--data-path={data}").succeeded().out
    exported = data.with_suffix(".rlp")
    ophion("blocks", "export", f"--to={exported}", f"--data-path={data}").succeeded()
    # the export begins with block 0, which a chain file of another client may lack
    wanted, got = chain.blocks.read_bytes(), exported.read_bytes()
    assert got == wanted or got == split_blocks(got)[0] + wanted


def main() -> int:
    """Run the command of the module docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--genesis-file", type=Path)
    parser.add_argument("--from", type=Path, dest="blocks")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.blocks is not None and given.genesis_file is not None:
            chain = ChainFiles(given.genesis_file, given.blocks)
        else:
            chain = shared_chain() or made_chain(Path(folder) / "chain")
        print(kill_imports(chain, Path(folder), given.kills, given.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())

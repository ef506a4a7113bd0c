"""Ophion's small Clique chain, imported by the real command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.data.small_chain.make import BLOCKS_FILE, GENESIS_FILE
from tests.integration.command import Finished, ophion

HEAD = "block 30 (0x99c5b6b1315a04ea90746612f6e46d9d3d97ba8d1725904e4588a3f610826ab9)"


def import_arguments(data: Path, blocks: Path = BLOCKS_FILE, genesis: Path = GENESIS_FILE) -> list[str]:
    """Return the arguments of an import into this data path."""
    return ["blocks", "import", f"--from={blocks}", f"--genesis-file={genesis}", f"--data-path={data}"]


def import_small(
    data: Path,
    *arguments: str,
    blocks: Path = BLOCKS_FILE,
    genesis: Path = GENESIS_FILE,
    env: Mapping[str, str] | None = None,
    prefix: Sequence[str] = (),
) -> Finished:
    """Import the small chain, or other block files."""
    return ophion(*import_arguments(data, blocks, genesis), *arguments, env=env, prefix=prefix)


def check(data: Path, prefix: Sequence[str] = ()) -> Finished:
    """Run `ophion storage check`."""
    return ophion("storage", "check", f"--data-path={data}", prefix=prefix)

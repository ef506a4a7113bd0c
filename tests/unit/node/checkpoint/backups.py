"""Backups of generated chains."""

from __future__ import annotations

from pathlib import Path

from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.engine import Vote
from ophion.node.database_copy import CopyStep, back_up
from ophion.node.datadir import DataDirectory
from tests.unit.proofs.chains import KEYS, genesis_text, imported

BLOCKS = 30
VOTES = {number: Vote(KEYS[4].address, True) for number in range(1, 4)}
"""A fifth validator joins, by votes of three of four."""


def nothing(step: CopyStep, done: int, total: int) -> None:
    """Ignore progress."""


def chain_of(path: Path, protocol: str, blocks: int = BLOCKS) -> Genesis:
    """Write a chain with changing validators to a data path and return its genesis."""
    text = genesis_text(protocol, 4)
    with DataDirectory.open(path) as directory:
        directory.store()
    with imported(path / "database", text, blocks, VOTES):
        pass
    (path / "database" / "blocks.rlp").unlink()
    return parse_genesis(text)


def backup_of(path: Path, protocol: str, blocks: int = BLOCKS) -> tuple[Path, Genesis]:
    """Return a backup directory of a generated chain, and its genesis."""
    genesis = chain_of(path / "source", protocol, blocks)
    back_up(path / "source", path / "backup", 0, False, nothing)
    return path / "backup", genesis

"""Recognises data directories of other Ethereum clients.

Without this check, a node on such a directory would write its own database beside the other client's files. The node
would begin at block 0 and, with the validator key in the directory, seal a second block 1.
"""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path

from msgspec import Struct

from ophion.errors import StorageError

_GUIDE = "docs/migration/README.md"


class ForeignLayout(Struct, frozen=True):
    """File patterns of another client's data directory. One matching pattern identifies the client."""

    client: str
    patterns: tuple[str, ...]
    """Glob patterns relative to the data path."""
    source: str
    """Option of `ophion migrate` that reads this client's chain; `DIR` is replaced by the data path."""


_FROM_GETH = "--from-geth=DIR"
_RUNNING = "--rpc=URL"

FOREIGN_LAYOUTS = (
    ForeignLayout(
        "Besu",
        (
            "DATABASE_METADATA.json",
            "VERSION_METADATA.json",
            "database/CURRENT",
            "database/*.sst",
            "database/MANIFEST-*",
        ),
        "--from-besu=DIR",
    ),
    ForeignLayout(
        "GoQuorum",
        ("quorum-raft-state", "raft-wal", "raft-snap", "geth/privatestatemanager", "geth/quorum*"),
        _FROM_GETH,
    ),
    ForeignLayout(
        "geth",
        ("geth/chaindata", "geth/nodekey", "geth/lightchaindata", "chaindata/CURRENT", "chaindata/MANIFEST-*"),
        _FROM_GETH,
    ),
    ForeignLayout("Nethermind", ("nethermind_db",), _RUNNING),
    ForeignLayout("Erigon", ("chaindata/mdbx.dat", "snapshots/*.seg"), _RUNNING),
    ForeignLayout("reth", ("db/mdbx.dat", "static_files"), _RUNNING),
    ForeignLayout(
        "OpenEthereum",
        ("chains/*/db", "parity.conf"),
        _RUNNING,
    ),
    ForeignLayout("RocksDB or LevelDB", ("CURRENT", "MANIFEST-*"), "--from-rlp=FILE"),
)


def find_foreign_data(path: Path) -> tuple[ForeignLayout, Path] | None:
    """Find the data of another client by file names. Returns the client's layout and the file that matched."""
    try:
        names = os.listdir(path)
    except OSError:  # leave the error to the caller, which reports a path that is no directory or not readable
        return None
    for layout in FOREIGN_LAYOUTS:
        for pattern in layout.patterns:
            first = pattern.partition("/")[0]
            if first not in names and not ("*" in first and fnmatch.filter(names, first)):
                continue
            try:
                found = next(iter(sorted(path.glob(pattern))), None) if "*" in pattern else path / pattern
                if found is not None and found.exists():
                    return layout, found
            except OSError:
                continue
    return None


def refuse_foreign_data(path: Path) -> None:
    """Raise `StorageError` if the directory holds the data of another client. Nothing is written."""
    found = find_foreign_data(path)
    if found is None:
        return
    layout, evidence = found
    source = layout.source.replace("DIR", str(path))
    needs = {_RUNNING: f"start {layout.client} again, with its JSON-RPC", "--from-rlp=FILE": "export its blocks as RLP"}
    raise StorageError(
        f"The data path {path} holds data of {layout.client} ({evidence.relative_to(path)}). Ophion writes nothing"
        " there, because it would start a second chain at block 0.\n"
        f"To move the chain, {needs.get(layout.source, f'stop {layout.client}')} and run `ophion migrate {source}"
        " --genesis-file=GENESIS --data-path=NEW`.\n"
        f"The steps are in {_GUIDE}. To start a new chain, use an empty --data-path."
    )

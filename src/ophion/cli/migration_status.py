"""Reads from `admin_nodeInfo` which migration to QBFT a running node knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from ophion.cli.node_client import RpcNode
from ophion.errors import CommandError
from ophion.runtime.blocking_json_rpc import NoAnswer

_OLD_ENGINES = ("clique", "ibft2")


class MigrationSupport(Enum):
    """Whether a node reports a migration to QBFT."""

    UNKNOWN = "unknown"
    """The node does not report its rules, because the API group ADMIN is off or the node is another client."""
    NONE = "none"
    """The genesis file of the node has no migration."""
    PLANNED = "planned"
    """The genesis file of the node has a migration."""


class KnownMigration(Struct, frozen=True):
    """The migration in the genesis file of one node."""

    knowledge: MigrationSupport
    block: int | None = None
    """Number of the first QBFT block."""


NOT_REPORTED: Final = KnownMigration(MigrationSupport.UNKNOWN)


def known_migration(node: RpcNode) -> KnownMigration:
    """Ask a node for the migration in its genesis file. Raises `NoAnswer` if the node is offline."""
    try:
        info = node.ask("admin_nodeInfo")
    except NoAnswer:
        raise
    except CommandError:
        return NOT_REPORTED
    config = _member(_member(_member(info, "protocols"), "eth"), "config")
    if not isinstance(config, dict) or not any(engine in config for engine in _OLD_ENGINES):
        return KnownMigration(MigrationSupport.NONE) if isinstance(config, dict) else NOT_REPORTED
    block = _member(_member(config, "qbft"), "startBlock")
    is_block = isinstance(block, int) and not isinstance(block, bool) and 0 < block < 2**63
    return KnownMigration(MigrationSupport.PLANNED, block) if is_block else KnownMigration(MigrationSupport.NONE)


def migration_lines(nodes: Sequence[tuple[str, int, KnownMigration]]) -> Iterator[str]:
    """Yield lines for the operator about a running migration, from (address, height, migration) of each node."""
    blocks = sorted({known.block for _, _, known in nodes if known.block is not None})
    if not blocks:
        return
    head = max(height for _, height, _ in nodes)
    if len(blocks) > 1:
        yield (
            f"The nodes have different blocks for the migration to QBFT ({', '.join(map(str, blocks))}): give all of"
            " them the same genesis file and restart them, before the first of these blocks."
        )
    block = blocks[0]
    if head + 1 >= block:
        yield f"The network has moved to QBFT at block {block}."
    else:
        updated = sum(known.block is not None for _, _, known in nodes)
        yield (
            f"A migration to QBFT at block {block} is under way: {block - 1 - head} blocks are left before it, and"
            f" {updated} of {len(nodes)} nodes have the new genesis file."
        )
    for url, _, known in nodes:
        if known.knowledge is MigrationSupport.NONE:
            yield f"{url} does not have the migration: restart it with the new genesis file before block {block}."
        elif known.knowledge is MigrationSupport.UNKNOWN:
            yield f"{url} does not report its rules: check its genesis file by hand, or enable the API group ADMIN."


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None

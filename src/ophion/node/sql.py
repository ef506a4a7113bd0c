"""Builds the service for SQL queries of clients, if the API group SQL is enabled."""

from __future__ import annotations

from pathlib import Path

from ophion.node.config import NodeConfig
from ophion.rpc.services.sql_queries import SqlLimits, SqlQueries


def sql_queries(config: NodeConfig, data_path: Path) -> SqlQueries:
    """Create the service that answers SQL queries of clients in its own process."""
    limits = config.limits
    return SqlQueries(
        _chain_options(config, data_path),
        SqlLimits(limits.sql_timeout_s, limits.sql_max_rows, limits.sql_max_memory_mb),
    )


def _chain_options(config: NodeConfig, data_path: Path) -> list[str]:
    """Return the options of `ophion sql` that name the chain of this node."""
    network = config.network
    given = {
        "data-path": data_path,
        "network": network.network,
        "genesis-file": network.genesis_file,
        "dev-fork": network.dev_fork,
        "dev-chain-id": network.dev_chain_id,
    }
    return [f"--{name}={value}" for name, value in given.items() if value is not None]

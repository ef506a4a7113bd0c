"""Options of the database."""

from __future__ import annotations

from ophion.runtime.options import Options, at_least, option

_MIN_HISTORY = 16
_MEBIBYTE = 1024 * 1024


class StorageConfig(Options):
    """Storage: durability, cache and state history of the database."""

    durable: bool = option(
        "--durable-commits",
        default=True,
        help="Force every block to disk before clients see it. Without it a power failure may lose the last blocks or"
        " damage the database; killing the process does no harm.",
    )
    temporary: bool = option(
        "--temporary-data",
        default=False,
        help="Use a temporary directory that is removed at the end, unless --data-path is given.",
    )
    state_history: int | None = option(
        "--state-history",
        default=None,
        check=at_least(_MIN_HISTORY),
        metavar="BLOCKS",
        help="Keep the states of this many blocks before the head, and of the genesis; older ones are pruned while the"
        " node runs. A reorganisation beyond them is impossible. (default: all)",
    )
    state_cache: int = option(
        "--state-cache-size",
        default=64 * _MEBIBYTE,
        check=at_least(_MEBIBYTE),
        metavar="BYTES",
        help="Memory for recently changed parts of the state. A block that changes more needs more while it is built"
        " and written.",
    )
    pruning_enabled: bool = option(
        "--pruning-enabled", default=False, hidden=True, help="The older name of --state-history."
    )
    pruning_blocks_retained: int = option(
        "--pruning-blocks-retained",
        default=1024,
        check=at_least(1),
        hidden=True,
        needs="--pruning-enabled",
        help="Blocks whose states are kept.",
    )

    @property
    def states_kept(self) -> int | None:
        """Return the number of blocks before the head whose states are stored, or None if all states are stored."""
        if self.state_history is None and self.pruning_enabled:
            return max(_MIN_HISTORY, self.pruning_blocks_retained)
        return self.state_history

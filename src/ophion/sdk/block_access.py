"""`BlockAccess`: reads and mines blocks, and sets the time of a chain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ophion.sdk import arguments
from ophion.sdk.account_access import AccountAccess
from ophion.sdk.backend import Block, block_tag
from ophion.sdk.errors import ChainError
from ophion.sdk.receipt import Receipt
from ophion.sdk.rpc_objects import BlockObject, TransactionObject


class BlockAccess(AccountAccess):
    """The part of `Chain` that is about blocks, time and snapshots."""

    is_mining_paused = False
    """Whether the chain is inside of `paused_mining`."""

    @property
    def chain_id(self) -> int:
        return self.backend.chain_id()

    @property
    def block_number(self) -> int:
        """Number of the latest block."""
        return self.backend.block_number()

    @property
    def time(self) -> int:
        """Timestamp of the next block. Assign a later timestamp to move the chain's time forward."""
        return self.backend.next_timestamp()

    @time.setter
    def time(self, timestamp: int) -> None:
        self.backend.set_next_timestamp(arguments.whole_number("time", timestamp, arguments.UINT64, " of seconds"))

    def mine(self, count: int = 1, interval: int | None = None) -> None:
        """Mine blocks, `interval` seconds apart."""
        blocks = arguments.whole_number("count", count, arguments.MAX_BLOCKS)
        if interval is not None:
            interval = arguments.whole_number("interval", interval, arguments.MAX_INTERVAL_S, " of seconds")
        self.backend.mine(blocks, interval)

    @contextmanager
    def paused_mining(self) -> Iterator[None]:
        """Pause mining in a `with` block. When the `with` block ends, all its transactions are mined in one block."""
        self.backend.set_automine(False)
        self.is_mining_paused = True
        try:
            yield
        finally:
            self.is_mining_paused = False
            self.backend.mine(1, None)
            self.backend.set_automine(True)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Context manager that restores blocks, accounts, time and pending transactions at the end of its `with`
        block.
        """
        saved = self.backend.snapshot()
        try:
            yield
        finally:
            self.backend.revert(saved)

    def save(self) -> int:
        """Save the current state and return its id, which `restore` accepts once."""
        return self.backend.snapshot()

    def restore(self, saved: int) -> None:
        """Restore the state whose id `save` has returned."""
        if not self.backend.revert(arguments.whole_number("saved", saved, arguments.UINT64)):
            raise ChainError(f"There is no saved state {saved}: it was restored already, or one before it was.")

    def block(self, number: Block = None) -> BlockObject:
        """Return a block as JSON-RPC shows it."""
        found: Mapping[str, Any] | None = self.backend.request(
            "eth_getBlockByNumber", [block_tag(arguments.block(number, "number")), True]
        )
        if found is None:
            raise ChainError(f"There is no block {number}; the latest is {self.block_number}.")
        return BlockObject(found)

    def transaction(self, transaction: Receipt | str | bytes) -> TransactionObject:
        """Return a transaction as JSON-RPC shows it."""
        hash = arguments.transaction_hash(transaction)
        found: Mapping[str, Any] | None = self.backend.request("eth_getTransactionByHash", [hash])
        if found is None:
            raise ChainError(f"There is no transaction {hash}.")
        return TransactionObject(found)

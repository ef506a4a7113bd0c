"""A chain on a temporary database, and valid or invalid blocks on any parent."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ophion.chain.block import encode_block
from ophion.chain.block_builder import BlockBuilder
from ophion.chain.block_import import ImportCore, StagedBlock
from ophion.chain.chain import Chain
from ophion.chain.events import ChainBlock
from ophion.chainspec.dev_network import dev_genesis
from ophion.chainspec.genesis import Genesis
from ophion.consensus.engine import BlockPreferences
from ophion.consensus.engine_factory import engine_for
from ophion.native.executor import Execution
from ophion.native.store import open_store
from ophion.native.transactions import decode_transactions
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32
from ophion.runtime.clock import ManualClock
from ophion.testing.signing import DEV_KEYS, legacy_transaction

MINER = b"\x0c" * 20


class Workshop:
    """Makes blocks and imports them one by one."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.clock = ManualClock()
        self.core = ImportCore(chain, self.clock)
        self.builder = BlockBuilder(chain, keeps_revert_data=False)
        self._executions: dict[Hash32, Execution] = {}

    def block(
        self,
        parent: HashedHeader | None = None,
        transactions: Sequence[bytes] = (),
        seconds: int = 10,
        extra: bytes = b"",
        **changes: Any,
    ) -> ChainBlock:
        """Make a block on `parent` (default: the head). Header fields can be changed afterwards."""
        parent = parent or self.chain.head
        preferences = BlockPreferences(timestamp=parent.timestamp + seconds, author=MINER, extra_data=extra)
        draft = self.chain.engine.prepare(parent, preferences, self.core)
        made = self._executions.get(parent.hash)
        state = made.state if made is not None else self.chain.store.state(parent.header.state_root)
        candidates = [item for item in decode_transactions(transactions) if not isinstance(item, str)]
        assert len(candidates) == len(transactions)
        built = self.builder.fill(draft, state, candidates, 10.0)
        assert not built.skipped, built.skipped
        header = self.chain.engine.hashed(replace(built.header, **changes))
        self._executions[header.hash] = built.execution
        return ChainBlock(header, built.body)

    def branch(self, length: int, parent: HashedHeader | None = None, extra: bytes = b"") -> list[ChainBlock]:
        """Make a branch; each block has one transfer by the first account."""
        blocks: list[ChainBlock] = []
        cursor = parent or self.chain.head
        for _ in range(length):
            block = self.block(cursor, [self.transfer(cursor)], extra=extra)
            blocks.append(block)
            cursor = block.header
        return blocks

    def transfer(self, parent: HashedHeader) -> bytes:
        """Return a transfer for the block after `parent`. The nonce assumes one transfer in each earlier block."""
        return legacy_transaction(DEV_KEYS[1], parent.number, to=b"\x0d" * 20, value=1, chain_id=2018)

    def put(self, block: ChainBlock) -> StagedBlock:
        """Import one block and commit it."""
        staged = self.core.stage(block.header, block.body)
        self.settle()
        return staged

    def forget(self) -> None:
        """Release every execution, so that this process can open the database again."""
        self.core.discard()
        self._executions.clear()
        gc.collect()

    def settle(self) -> None:
        """Commit the staged blocks and publish the events."""
        change = self.core.commit()
        if change is not None:
            self.chain.advance(change, {})


def file_of(blocks: Sequence[ChainBlock]) -> bytes:
    """Return the blocks as file content."""
    return b"".join(encode_block(block) for block in blocks)


@contextmanager
def workshop(path: Path, genesis: Genesis | None = None) -> Iterator[Workshop]:
    """Open the dev network under Petersburg, or another network, in this directory. A second call simulates a
    restart.
    """
    store = open_store(path, durable=False)
    try:
        given = genesis or dev_genesis("petersburg")
        shop = Workshop(Chain.open(store, given, engine_for(given.spec)))
        yield shop
        shop.forget()
    finally:
        store.close()

"""Reads datasets from the node's own database, even while the node runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ophion.chain.block import ommers_of
from ophion.chain.block_environment import block_env
from ophion.chain.chain import Chain
from ophion.chainspec.config_compatibility import RULES_KEY
from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.genesis import Genesis
from ophion.consensus.registry import engine_for
from ophion.data.arrow import arrow_schema, record_batch
from ophion.data.datasets import Column, Dataset, Source
from ophion.data.reader import BlockRef, Finality
from ophion.data.selection import Rows
from ophion.data.validators import validator_batch
from ophion.errors import CommandError, GenesisError, MissingStateError, StorageError
from ophion.native.exceptions import MissingState, translated
from ophion.native.tables import ReplayStop, block_ranges, replay_table, scan_table
from ophion.native.tracing import TracedBlock
from ophion.node.datadir import DataDirectory

MAX_BATCH_BYTES: Final = 8 * 2**20
_TRANSACTIONS_PER_RANGE: Final = {Source.STORED: 8_000, Source.EXECUTED: 2_000}
_HEADERS_PER_RANGE: Final = 2_000
CLIQUE_DEPTH: Final = 64
"""Number of later blocks that --follow waits for before it exports a block, on a network without finality."""

_FINAL_ENGINES: Final = {EngineKind.IBFT2.value, EngineKind.IBFT.value, EngineKind.QBFT.value}


class DatabaseReader:
    """A `TableReader` over LMDB. Reads see only committed blocks and never block the node."""

    def __init__(self, data_path: Path, genesis: Callable[[], Genesis] | None = None) -> None:
        """Open the database. `genesis` returns the genesis file; it is called only for datasets that execute blocks."""
        self._directory = DataDirectory.beside_a_node(data_path)
        self._store = self._directory.store(read_only=True)
        self._genesis = genesis
        self._chain: Chain | None = None
        self._stop = ReplayStop()
        with translated():
            record = self._store.meta(RULES_KEY)
            has_blocks = self._store.head() is not None
        if record is None or not has_blocks:
            self.close()
            raise StorageError(f"There is no chain in {data_path}.")
        rules: dict[str, list[Any]] = json.loads(record)
        self.chain_id: int = int(rules["chainId"][0] or 0)
        self._engine = str(rules["consensus"][0])

    def head(self) -> BlockRef:
        """Return number and hash of the newest block."""
        with translated():
            head = self._store.head()
        if head is None:
            raise StorageError("The database is empty.")
        return BlockRef(head[1], head[0])

    def block(self, number: int) -> BlockRef | None:
        """Return number and hash of the canonical block with this number."""
        with translated():
            found = self._store.canonical_hash(number)
        return None if found is None else BlockRef(number, found)

    def finality(self) -> Finality:
        """Return the finality of the network's consensus."""
        if self._engine in _FINAL_ENGINES:
            return Finality(0, f"{self._engine} finalises every block")
        return Finality(CLIQUE_DEPTH, f"{self._engine} has no finality; {CLIQUE_DEPTH} blocks are waited for")

    def ranges(self, dataset: Dataset, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Split a range of blocks into ranges with similar numbers of transactions."""
        if dataset.source is Source.SEALED:
            return [
                (start, min(start + _HEADERS_PER_RANGE - 1, last))
                for start in range(first, last + 1, _HEADERS_PER_RANGE)
            ]
        with translated():
            ends = block_ranges(self._store, first, last, _TRANSACTIONS_PER_RANGE[dataset.source])
        starts = [first, *(end + 1 for end in ends)]
        return list(zip(starts, ends, strict=False))

    def batches(
        self, dataset: Dataset, columns: Sequence[Column], first: int, last: int, rows: Rows, hex: bool
    ) -> Iterator[Any]:
        """Yield record batches. Rust fills their columns without the GIL."""
        schema = arrow_schema(dataset, columns, hex)
        names = [column.name for column in columns]
        selected = rows.filter()
        if dataset.source is Source.EXECUTED:
            for start, end in self.ranges(dataset, first, last):
                blocks = self._traced(dataset, start, end)
                with translated():
                    count, filled = replay_table(blocks, dataset.name, names, selected, self.chain_id, hex, self._stop)
                yield record_batch(schema, count, filled)
            return
        if dataset.source is Source.SEALED:
            for start, end in self.ranges(dataset, first, last):
                with translated():
                    batch = validator_batch(self.chain(dataset.name), dataset, columns, start, end, rows, hex)
                yield batch
            return
        while first <= last:
            with translated():
                first, (count, filled) = scan_table(
                    self._store, dataset.name, names, first, last, selected, self.chain_id, hex, MAX_BATCH_BYTES
                )
            if count:
                yield record_batch(schema, count, filled)

    def _traced(self, dataset: Dataset, first: int, last: int) -> list[TracedBlock]:
        """Return blocks with their parent states. The genesis block is omitted, because it has no transactions."""
        chain = self.chain(dataset.name)
        return [self._traced_block(chain, number) for number in range(max(first, 1), last + 1)]

    def _traced_block(self, chain: Chain, number: int) -> TracedBlock:
        header, parent = chain.canonical(number), chain.canonical(number - 1)
        body = None if header is None else chain.store.body(header.hash)
        if header is None or parent is None or body is None:
            raise StorageError(f"Block {number} is missing from the database; run `ophion storage check`.")
        env = block_env(chain.spec, chain.rules, header.header, chain.engine.beneficiary(header))
        rewards = chain.engine.rewards(header, ommers_of(body)) or [(chain.engine.beneficiary(header), 0)]
        try:
            state = self._store.state(parent.header.state_root)
        except MissingState as error:
            raise MissingStateError(
                f"The state before block {number} is pruned. Export blocks whose states are stored (--start-block), or"
                " use a node that keeps every state (--state-history)."
            ) from error
        return TracedBlock(parent=state, env=env, body=body, hash=header.hash, rewards=rewards)

    def chain(self, dataset: str) -> Chain:
        """Return the chain with its rules, which execution and the recovery of seals need."""
        if self._chain is None:
            if self._genesis is None:
                raise CommandError(f"The dataset {dataset} needs the genesis file of the network.")
            genesis = self._genesis()
            try:
                self._chain = Chain.open(self._store, genesis, engine_for(genesis.spec))
            except GenesisError as error:
                raise CommandError(
                    f"The dataset {dataset} needs the genesis file of the network (--genesis-file). {error}"
                ) from error
        return self._chain

    def stop(self) -> None:
        """Stop block execution in other threads."""
        self._stop.set()

    def close(self) -> None:
        """Close the database."""
        self._directory.close()

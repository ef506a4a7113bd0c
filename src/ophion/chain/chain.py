"""`Chain`: the committed chain of one network, with its database, rules and head.

Reads go to the database. `head` changes together with the published event, so listeners see the head of their event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ophion.chain.block import ommers_of
from ophion.chain.block_environment import chain_rules
from ophion.chain.events import ChainBlock, ChainEvent, Extended, Reorged, Rewound
from ophion.chain.fork_choice import HeadChange
from ophion.chain.header_cache import HeaderCache
from ophion.chainspec.config_compatibility import block_rules, check_rules, encode_rules
from ophion.chainspec.genesis import Genesis, check_stored
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.engine import Engine, Tip
from ophion.errors import MissingStateError, StorageError
from ophion.native.exceptions import MissingState, as_ophion_error, translated
from ophion.native.executor import Execution, genesis_state
from ophion.native.store import RULES_KEY, BlockHistory, NewBlock, State, Store
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Hash32
from ophion.runtime.topic import Topic

FIRST_STATE_KEY: Final = "first state"
"""Database key under which the number of the checkpoint block is stored."""

RESTORED_KEY: Final = "restored over genesis"
"""Database key under which a development node stores its own genesis hash, after the blocks of a state dump have
replaced its blocks.
"""


class Chain:
    """Database, rules and head of one network. Implements `HeaderReader` for committed blocks."""

    def __init__(self, store: Store, spec: ChainSpec, engine: Engine, genesis: HashedHeader) -> None:
        """Create the chain. Only `Chain.open` calls this, because `open` checks the genesis of the database."""
        self.store = store
        self.spec = spec
        self.engine = engine
        self.rules = chain_rules(spec)
        self.genesis = genesis
        self.is_relaxed = False
        """Whether this is a development chain, where senders may have code and no cap limits a transaction's gas."""
        self.has_gas_cap = False
        """Whether the cap of EIP-7825 on a transaction's gas applies although `is_relaxed` is set."""
        self.has_base_fee_in_free_calls = False
        """Whether calls without a gas price see the base fee of the block, as in Anvil. Otherwise such calls see 0, as
        in geth.
        """
        self.events: Topic[ChainEvent] = Topic()
        self.first_state = int.from_bytes(store.meta(FIRST_STATE_KEY) or b"", "big")
        """Number of the checkpoint block from which this chain started, or 0. Blocks before the checkpoint have no
        states.
        """
        self.state_history: int | None = None
        """Number of blocks below the head whose states are kept; None if all states are kept. The genesis state is
        always kept.
        """
        self.edited_roots: dict[tuple[int, Hash32], Hash32] = {}
        """State roots that a development node has set by editing, by number and original state root of the block."""
        self._history: BlockHistory | None = BlockHistory(store)
        self._headers = HeaderCache(store)
        self._tip = self._stored_tip()

    @classmethod
    def open(cls, store: Store, genesis: Genesis, engine: Engine) -> Chain:
        """Open the chain in this database. An empty database starts with `genesis`.

        Raises `GenesisError` if the database has another genesis (the error names both hashes), or if its blocks were
        produced under other rules.
        """
        with translated():
            execution, hashed = _genesis(store, genesis, engine)
            header = hashed.header
            stored = store.canonical_hash(0)
            if stored is None:
                block = NewBlock(
                    hash=hashed.hash,
                    number=0,
                    header=header.encode(),
                    body=Body.of([], [], None if header.withdrawals_root is None else []),
                    execution=execution,
                    total_difficulty=header.difficulty,
                )
                store.commit([block], [], [hashed.hash], [(RULES_KEY, encode_rules(block_rules(genesis.spec)))])
            elif store.meta(RESTORED_KEY) != hashed.hash:
                check_stored(hashed.hash, stored)
            chain = cls(store, genesis.spec, engine, hashed)
            if stored is not None:
                chain._keep_rules()
            return chain

    @property
    def caps_transaction_gas(self) -> bool:
        """Whether the cap of EIP-7825 limits a transaction's gas from Osaka on."""
        return self.has_gas_cap or not self.is_relaxed

    @property
    def head(self) -> HashedHeader:
        """The head of the chain, as of the last published event."""
        return self._tip.header

    @property
    def tip(self) -> Tip:
        """The head with its total difficulty."""
        return self._tip

    # --- HeaderReader: blocks of any branch ---

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        """Return the committed header with this hash on any branch, or None."""
        return self._headers.get(block_hash)

    def canonical(self, number: int) -> HashedHeader | None:
        """Return the committed canonical header with this number, or None."""
        block_hash = self.store.canonical_hash(number)
        return None if block_hash is None else self._headers.get(block_hash)

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Return the total difficulty of a committed block, or None if the block is unknown."""
        return self.store.total_difficulty(block_hash)

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """Return the ommers of a committed block."""
        body = self.store.body(block_hash)
        return () if body is None else ommers_of(body)

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """Return the checkpoint that the engine has stored for a block, or None."""
        return self.store.meta(checkpoint_key(block_hash))

    # --- bodies and receipts ---

    @property
    def history_start(self) -> int:
        """The lowest block number from which on all blocks have bodies and receipts; 0 if every block has both.

        After snap synchronisation, the number falls while the node downloads old blocks. The genesis block always has
        both.
        """
        start = None if self._history is None else self._history.start
        if start is None:
            # the download is complete, and new blocks are committed with their bodies, so the result stays 0
            self._history = None
        return start or 0

    # --- states ---

    def keeps_state(self, number: int) -> bool:
        """Whether the node keeps the state of this block number."""
        return number == 0 or number >= self.oldest_state

    @property
    def oldest_state(self) -> int:
        """The lowest block number from which all states up to the head are kept. The genesis state is always kept."""
        if self.state_history is None:
            return self.first_state
        return max(self._tip.header.number - self.state_history, self.first_state)

    def state(self, header: Header) -> State:
        """Return the state after a committed block. Raises `MissingStateError` when the state is pruned."""
        if not self.keeps_state(header.number):
            is_pruned = header.number >= self.first_state
            why = "--state-history" if is_pruned else "the node started from a checkpoint or by snap synchronisation"
            raise MissingStateError(
                f"The state of block {header.number} is not kept ({why}). The oldest kept state is that of block"
                f" {self.oldest_state}."
            )
        try:
            return self.store.state(self.root_after(header))
        except MissingState as error:
            raise as_ophion_error(error) from error

    def root_after(self, header: Header) -> Hash32:
        """Return the state root on which the next block executes: the header's root, unless a development node has
        edited the state.
        """
        if not self.edited_roots:
            return header.state_root
        return self.edited_roots.get((header.number, header.state_root), header.state_root)

    def is_canonical(self, header: HashedHeader) -> bool:
        """Whether a block is on the canonical chain."""
        return self.store.canonical_hash(header.number) == header.hash

    # --- events ---

    def advance(self, change: HeadChange, bodies: dict[Hash32, Body]) -> ChainEvent | None:
        """Move the head after a commit and publish the event. Bodies that are not in `bodies` are read and decoded.

        Returns the event, or None if the chain has no listeners.
        """
        self._tip = change.tip
        if not self.events.has_listeners:
            return None
        added = tuple(self._block(header, bodies) for header in change.added)
        event: ChainEvent
        if change.removed:
            event = Reorged(tuple(self._block(header, bodies) for header in change.removed), added)
        else:
            event = Extended(added)
        self.events.publish(event)
        return event

    def begin_at(self, header: HashedHeader, execution: Execution) -> None:
        """Start this chain at a block of another chain. Development nodes that fork another chain use this method.

        `execution` gives the state after the block. Its root may differ from the state root in the header, because a
        fork has only a part of the other chain's state.
        """
        block = NewBlock(
            hash=header.hash,
            number=header.number,
            header=header.header.encode(),
            body=Body.of([], [], None if header.header.withdrawals_root is None else []),
            execution=execution,
            total_difficulty=header.header.difficulty,
        )
        with translated():
            self.store.commit([block], [], [header.hash], [])
        self.edited_roots = {(header.number, header.header.state_root): execution.state_root}
        self.genesis = header
        self._tip = Tip(header, header.header.difficulty)

    def rewind(self, tip: Tip) -> None:
        """Make a committed block the head and announce it. Development nodes call this method after `Store.rewind`.

        If `tip` is already the head, the announcement says that the state of the head has changed.
        """
        self._tip = tip
        self.events.publish(Rewound((), tip.header))

    def follow(self, tip: Tip) -> None:
        """Make a block the head that another process has committed and announced, and announce it here. Processes that
        only read the database call this method.
        """
        self._tip = tip
        self.events.publish(Rewound((), tip.header))

    def _block(self, header: HashedHeader, bodies: dict[Hash32, Body]) -> ChainBlock:
        body = bodies.get(header.hash) or self.store.body(header.hash)
        if body is None:
            raise StorageError(f"The body of block {header} is missing from the database; run `ophion storage check`.")
        return ChainBlock(header, body)

    def _keep_rules(self) -> None:
        """Store the current rules, unless the database is read-only. Raises `GenesisError` if the stored blocks were
        produced under other rules.
        """
        rules = block_rules(self.spec)
        stored, given = self.store.meta(RULES_KEY), encode_rules(rules)
        if stored:
            check_rules(stored, rules, self.head.header)
        if stored != given and not self.store.is_read_only:
            self.store.put_meta(RULES_KEY, given)

    def _stored_tip(self) -> Tip:
        found = self.store.head()
        header = self._headers.get(found[0]) if found is not None else None
        total_difficulty = self.store.total_difficulty(found[0]) if found is not None else None
        if header is None or total_difficulty is None:
            raise StorageError("The head of the chain is missing from the database; run `ophion storage check`.")
        return Tip(header, total_difficulty)


def genesis_header(store: Store, genesis: Genesis, engine: Engine) -> HashedHeader:
    """Return the genesis header of a genesis file. Writes nothing."""
    return _genesis(store, genesis, engine)[1]


def _genesis(store: Store, genesis: Genesis, engine: Engine) -> tuple[Execution, HashedHeader]:
    accounts = [(a.address, a.nonce, a.balance, a.code, a.storage) for a in genesis.accounts]
    execution = genesis_state(store, accounts)
    header = genesis.header(execution.state_root)
    engine.check_genesis(header)
    return execution, engine.hashed(header)


def checkpoint_key(block_hash: Hash32) -> str:
    """Return the database key of a checkpoint. The block hash is the whole key, because it determines all earlier
    blocks.
    """
    return f"checkpoint:{block_hash.hex()}"

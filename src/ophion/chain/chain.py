"""`Chain`: the committed chain of one network, and everything that belongs to it.

It ties the database to the rules it was made with. Reads go straight to the database; the head is the last one that was
published, so that whoever reacts to an event and looks at the head sees what the event said.
"""

from __future__ import annotations

from collections.abc import Sequence

from ophion.chain.block import ommers_of
from ophion.chain.block_environment import chain_rules
from ophion.chain.events import ChainBlock, ChainEvent, Extended, Reorged, Rewound
from ophion.chain.fork_choice import HeadChange
from ophion.chain.header_cache import HeaderCache
from ophion.chainspec.config_compatibility import RULES_KEY, check_rules, encode_rules, lasting_rules
from ophion.chainspec.genesis import Genesis, check_stored
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.engine import Engine, Tip
from ophion.errors import MissingStateError, StorageError
from ophion.native.exceptions import MissingState, as_ophion_error, translated
from ophion.native.executor import genesis_state
from ophion.native.store import NewBlock, State, Store
from ophion.native.transactions import Body
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import Hash32
from ophion.runtime.topic import Topic


class Chain:
    """Database, rules and head of one network; also the `HeaderReader` of committed blocks."""

    def __init__(self, store: Store, spec: ChainSpec, engine: Engine, genesis: HashedHeader) -> None:
        """Use `Chain.open`, which makes sure that the database holds this genesis."""
        self.store = store
        self.spec = spec
        self.engine = engine
        self.rules = chain_rules(spec)
        self.genesis = genesis
        self.is_relaxed = False
        """A development chain, on which senders may have code and no cap limits a transaction's gas."""
        self.events: Topic[ChainEvent] = Topic()
        self.state_history: int | None = None
        """Blocks before the head whose states are kept; None for all. That of the genesis always is."""
        self.edited_roots: dict[tuple[int, Hash32], Hash32] = {}
        """Roots of states that a development node has edited, by number and state root of their blocks."""
        self._headers = HeaderCache(store)
        self._tip = self._stored_tip()

    @classmethod
    def open(cls, store: Store, genesis: Genesis, engine: Engine) -> Chain:
        """The chain in this database, begun with `genesis` when it is empty.

        `GenesisError` when it was begun with another one, with both hashes in the message, or when blocks that it holds
        were made with other rules.
        """
        accounts = [(a.address, a.nonce, a.balance, a.code, a.storage) for a in genesis.accounts]
        with translated():
            execution = genesis_state(store, accounts)
            header = genesis.header(execution.state_root)
            engine.check_genesis(header)
            hashed = engine.hashed(header)
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
                store.commit([block], [], [hashed.hash], [(RULES_KEY, encode_rules(lasting_rules(genesis.spec)))])
            else:
                check_stored(hashed.hash, stored)
            chain = cls(store, genesis.spec, engine, hashed)
            if stored is not None:
                chain._keep_rules()
            return chain

    @property
    def head(self) -> HashedHeader:
        """The last published head."""
        return self._tip.header

    @property
    def tip(self) -> Tip:
        """The head with its total difficulty."""
        return self._tip

    # --- HeaderReader: blocks of any branch ---

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        """A committed header on any branch."""
        return self._headers.get(block_hash)

    def canonical(self, number: int) -> HashedHeader | None:
        """The committed header with this number on the canonical chain."""
        block_hash = self.store.canonical_hash(number)
        return None if block_hash is None else self._headers.get(block_hash)

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Sum of the difficulties up to and including a committed block."""
        return self.store.total_difficulty(block_hash)

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """The ommers of a committed block."""
        body = self.store.body(block_hash)
        return () if body is None else ommers_of(body)

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """What the engine wanted to know again about a block."""
        return self.store.meta(checkpoint_key(block_hash))

    # --- states ---

    def keeps_state(self, number: int) -> bool:
        """Whether the state of a block with this number is one of those that are kept."""
        return number == 0 or number >= self.oldest_state

    @property
    def oldest_state(self) -> int:
        """The first block from which on every state is kept; beside them there is that of the genesis."""
        return 0 if self.state_history is None else max(self._tip.header.number - self.state_history, 0)

    def state(self, header: Header) -> State:
        """The world after a committed block; `MissingStateError` when it is not kept."""
        if not self.keeps_state(header.number):
            raise MissingStateError(f"The state of block {header.number} is not kept (--state-history).")
        try:
            return self.store.state(self.root_after(header))
        except MissingState as error:
            raise as_ophion_error(error) from error

    def root_after(self, header: Header) -> Hash32:
        """Root of the state that the next block builds upon: the header's, unless a development node has edited it."""
        if not self.edited_roots:
            return header.state_root
        return self.edited_roots.get((header.number, header.state_root), header.state_root)

    def is_canonical(self, header: HashedHeader) -> bool:
        """Whether a block lies on the canonical chain."""
        return self.store.canonical_hash(header.number) == header.hash

    # --- events ---

    def advance(self, change: HeadChange, bodies: dict[Hash32, Body]) -> ChainEvent | None:
        """Move the head after a commit and tell everybody; `bodies` are those at hand, the rest is read.

        Returns the event, or None when nobody listens and none was made.
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

    def rewind(self, tip: Tip) -> None:
        """Make a committed block the head and announce it; for development nodes, after `Store.rewind`.

        With the tip that the chain has already, announces that the state of the head has changed.
        """
        self._tip = tip
        self.events.publish(Rewound((), tip.header))

    def _block(self, header: HashedHeader, bodies: dict[Hash32, Body]) -> ChainBlock:
        body = bodies.get(header.hash) or self.store.body(header.hash)
        if body is None:
            raise StorageError(f"The body of block {header} is missing from the database; run `ophion storage check`.")
        return ChainBlock(header, body)

    def _keep_rules(self) -> None:
        """Refuse rules that the stored blocks were not made with; from now on these hold for later ones."""
        rules = lasting_rules(self.spec)
        stored, given = self.store.meta(RULES_KEY), encode_rules(rules)
        if stored:
            check_rules(stored, rules, self.head.header)
        if stored != given:
            self.store.put_meta(RULES_KEY, given)

    def _stored_tip(self) -> Tip:
        found = self.store.head()
        header = self._headers.get(found[0]) if found is not None else None
        total_difficulty = self.store.total_difficulty(found[0]) if found is not None else None
        if header is None or total_difficulty is None:
            raise StorageError("The head of the chain is missing from the database; run `ophion storage check`.")
        return Tip(header, total_difficulty)


def checkpoint_key(block_hash: Hash32) -> str:
    """Under which the database keeps what `Chain.checkpoint` answers; the block's hash says all about it."""
    return f"checkpoint:{block_hash.hex()}"

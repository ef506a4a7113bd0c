"""Dropping old states: what is done when, for a node that keeps the states of some blocks only.

A round forgets the roots of old states, marks the trie nodes that the others need, and deletes the rest (`Pruning` in
the extension; decision 110 has the reasons). Marking walks over every node that stays, so a round is worth while when
enough was written since the last one: then a written node costs a few visits, however large the state is.

What clients see does not depend on rounds: `Chain.state` refuses an old state whether it is still there or not.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from ophion.chain.chain import Chain
from ophion.errors import StorageError
from ophion.native.exceptions import MissingState, NativeError
from ophion.native.store import Pruning, Store
from ophion.primitives.block import Header
from ophion.primitives.types import Hash32
from ophion.runtime.clock import Clock
from ophion.runtime.lanes import Lanes
from ophion.runtime.topic import WhenFull

log = logging.getLogger(__name__)

_LEAST: Final = 10_000
"""Nodes that must have been written since the last round; some megabytes."""
_SHARE: Final = 12
"""Or one for so many that stayed: garbage never grows to more than this share of the state."""
_STATES_A_STEP: Final = 1_000
_READ_A_STEP: Final = 1_000
_SWEPT_A_STEP: Final = 1_500
"""Each step takes a millisecond or two, for which a block may have to wait."""
_LOOKED_FOR: Final = 64
"""States, all along the chain, of which one would be missing if some had been dropped."""
_REST: Final = 4
"""How many times as long as a step the pause after it is: four fifths of a core, and of the writer, are for others."""


class Step:
    """A piece of a round, to be taken until it has no more to do."""

    def __init__(self, writes: bool, part: Callable[[int], bool], most: int) -> None:
        self.writes = writes
        self.has_more = True
        self._part = part
        self._most = most

    def take(self) -> None:
        """Go on for some milliseconds."""
        self.has_more = self._part(self._most)


class Dropped(Struct):
    """What was done since the start."""

    rounds: int = 0
    """Those that began."""
    sweeps: int = 0
    """Those that came so far that they could delete."""
    marked: int = 0
    """Trie nodes that stayed, of all rounds together."""
    freed: int = 0
    """Trie nodes that went."""
    states: int = 0
    """States that went."""
    failures: int = 0
    is_running: bool = False


class PruningRounds:
    """Knows when a round is due, and what its steps are."""

    def __init__(self, store: Store, keep: int) -> None:
        """States of the head and of `keep` blocks before it stay."""
        self._store = store
        store.write_changes()
        self.keep = keep
        self.dropped = Dropped()
        self._written_before: int | None = None
        self._stayed = 0

    def is_due(self, head: int) -> bool:
        """Whether enough could be dropped; at the first question after a start that is not known, so it is tried."""
        if head <= self.keep:
            return False
        if self._written_before is None:
            return True
        return self._store.nodes_written() - self._written_before > max(_LEAST, self._stayed // _SHARE)

    def steps(self, head: int) -> Iterator[Step]:
        """The steps of one round, to be taken one after the other; blocks may be written between them."""
        written = self._store.nodes_written()
        begun: list[Pruning] = []

        def begin(oldest: int) -> bool:
            begun.append(self._store.begin_pruning(oldest))
            return False

        yield Step(False, begin, head - self.keep)  # reads as many headers as states are kept
        round, done = begun[0], self.dropped
        done.rounds += 1
        marked, freed, states = done.marked, done.freed, done.states
        parts: tuple[tuple[bool, Callable[[int], bool], int], ...] = (
            (True, round.forget, _STATES_A_STEP),
            (False, round.mark, _READ_A_STEP),
            (True, round.sweep, _SWEPT_A_STEP),
        )
        for writes, part, most in parts:
            step = Step(writes, part, most)
            done.sweeps += part == round.sweep
            while step.has_more:
                yield step
                done.marked, done.freed = marked + round.marked, freed + round.freed
                done.states = states + round.forgotten
        self._written_before, self._stayed = written, round.marked
        log.info("old states dropped states=%d nodes=%d kept=%d", round.forgotten, round.freed, round.marked)

    def catch_up(self, head: int) -> None:
        """A whole round at once, when one is due: for a command that nobody waits for."""
        if self.is_due(head):
            for step in self.steps(head):
                step.take()


def has_dropped_states(store: Store) -> bool:
    """Whether this database, however it is used now, was once told to keep some states only.

    Roots are forgotten in no order of blocks, and an interrupted round has forgotten a part of them: some are looked
    for all along the chain, from the first one on that is not the genesis' (a state never comes again).
    """
    head = store.head()
    if head is None:
        return False
    blocks = range(head[1] + 1)
    first = bisect_left(blocks, True, key=lambda number: _state_root(store, number) != _state_root(store, 0))
    for number in blocks[first :: max(1, (len(blocks) - first) // _LOOKED_FOR)]:
        try:
            store.state(_state_root(store, number))
        except MissingState:
            return True
    return False


def _state_root(store: Store, number: int) -> Hash32:
    block_hash = store.canonical_hash(number)
    header = None if block_hash is None else store.header(block_hash)
    if header is None:
        raise StorageError(f"Block {number} is missing from the database; run `ophion storage check`.")
    return Header.decode(header).state_root


class StatePruner:
    """The service that drops old states while the node runs."""

    name = "pruning"

    def __init__(self, chain: Chain, lanes: Lanes, clock: Clock, keep: int) -> None:
        self._chain = chain
        self._lanes = lanes
        self._clock = clock
        self.rounds = PruningRounds(chain.store, keep)

    async def run(self, ready: Callable[[], None]) -> None:
        """Look after every block whether a round is due."""
        blocks = self._chain.events.subscribe("pruning", 1, WhenFull.DROP_OLDEST)
        ready()
        try:
            async for _ in blocks:
                if self.rounds.is_due(self._chain.head.number):
                    await self._round()
        finally:
            blocks.close()

    async def _round(self) -> None:
        """One round, which leaves most of the time to everybody else."""
        dropped = self.rounds.dropped
        dropped.is_running = True
        try:
            for step in self.rounds.steps(self._chain.head.number):
                lane = self._lanes.write if step.writes else self._lanes.prune
                began = self._clock.monotonic()
                await lane.run(step.take)
                await asyncio.sleep(_REST * (self._clock.monotonic() - began))
        except NativeError as error:
            # the chain does not depend on it: whatever is wrong stops the next commit, or is named by the check
            dropped.failures += 1
            log.error("old states were not dropped error=%s; run `ophion storage check`", error)
        finally:
            dropped.is_running = False

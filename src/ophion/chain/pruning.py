"""Deletes old states on a node that keeps only the states of recent blocks.

A pruning round removes the roots of old states, marks the trie nodes that the remaining states need, and deletes all
other trie nodes (`Pruning` in the Rust extension, decision 110). Marking visits every remaining node, so a round starts
only after enough new nodes were written. The cost per written node is therefore constant for any size of the state.

Clients see no difference: `Chain.state` refuses an old state even before it is deleted.
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
from ophion.primitives.header import Header
from ophion.primitives.types import Hash32
from ophion.runtime.clock import Clock
from ophion.runtime.thread_pools import Lanes
from ophion.runtime.topic import WhenFull

log = logging.getLogger(__name__)

_LEAST: Final = 10_000
"""Minimum number of nodes written between two pruning rounds. These nodes take some megabytes."""
_SHARE: Final = 12
"""Divisor: a pruning round starts only when the nodes written since the last round reach 1/12 of the remaining
nodes.
"""
_STATES_A_STEP: Final = 1_000
_READ_A_STEP: Final = 1_000
_SWEPT_A_STEP: Final = 1_500
"""Maximum number of nodes that one step deletes. A step takes one or two milliseconds and may delay a block."""
_LOOKED_FOR: Final = 64
"""Number of blocks, spread over the chain, for which `has_dropped_states` checks whether the state is stored."""
_REST: Final = 4
"""Pause after a step, as a multiple of the step's duration. So pruning uses at most a fifth of a core and of the
database writer.
"""


class PruningStep:
    """A part of a pruning round, repeated until nothing is left to do."""

    def __init__(self, writes: bool, part: Callable[[int], bool], most: int) -> None:
        self.writes = writes
        self.has_more = True
        self._part = part
        self._most = most

    def take(self) -> None:
        """Run the pruning step for some milliseconds."""
        self.has_more = self._part(self._most)


class PruningTotals(Struct):
    """Pruning totals since the start of the node."""

    rounds: int = 0
    """Number of pruning rounds started."""
    sweeps: int = 0
    """Number of pruning rounds that deleted nodes."""
    marked: int = 0
    """Number of trie nodes marked as needed, summed over all rounds."""
    freed: int = 0
    """Number of trie nodes deleted."""
    states: int = 0
    """Number of states deleted."""
    failures: int = 0
    is_running: bool = False


class PruningRounds:
    """Decides when a pruning round is due, and runs its steps."""

    def __init__(self, store: Store, keep: int) -> None:
        """Create the object that decides about pruning rounds. The states of the head and of `keep` blocks before the
        head are kept.
        """
        self._store = store
        store.write_changes()
        self.keep = keep
        self.dropped = PruningTotals()
        self._written_before: int | None = None
        self._stayed = 0

    def is_due(self, head: int) -> bool:
        """Whether enough nodes were written since the last pruning round, or no round has run since the start. False
        while no state is old enough.
        """
        if head <= self.keep:
            return False
        if self._written_before is None:
            return True
        return self._store.nodes_written() - self._written_before > max(_LEAST, self._stayed // _SHARE)

    def steps(self, head: int) -> Iterator[PruningStep]:
        """Yield the steps of one pruning round. Blocks may be written between two steps."""
        written = self._store.nodes_written()
        begun: list[Pruning] = []

        def begin(oldest: int) -> bool:
            begun.append(self._store.begin_pruning(oldest))
            return False

        # `begin` is a step of its own, because it takes long: it reads one header for each state that is kept
        yield PruningStep(False, begin, head - self.keep)
        round, done = begun[0], self.dropped
        done.rounds += 1
        marked, freed, states = done.marked, done.freed, done.states
        parts: tuple[tuple[bool, Callable[[int], bool], int], ...] = (
            (True, round.forget, _STATES_A_STEP),
            (False, round.mark, _READ_A_STEP),
            (True, round.sweep, _SWEPT_A_STEP),
        )
        for writes, part, most in parts:
            step = PruningStep(writes, part, most)
            done.sweeps += part == round.sweep
            while step.has_more:
                yield step
                done.marked, done.freed = marked + round.marked, freed + round.freed
                done.states = states + round.forgotten
        self._written_before, self._stayed = written, round.marked
        log.info("pruned old states states=%d nodes=%d kept=%d", round.forgotten, round.freed, round.marked)

    def catch_up(self, head: int) -> None:
        """Run all steps of a pruning round without pauses, if a round is due. Commands use this method."""
        if self.is_due(head):
            for step in self.steps(head):
                step.take()


def has_dropped_states(store: Store) -> bool:
    """Whether states of this database were pruned or never fetched.

    An interrupted pruning round has removed only some state roots, in no particular order. So the check looks for the
    state roots of blocks that are spread over the chain, starting with the first block whose root differs from the
    genesis root, because the genesis state is always kept.
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
    """Service that deletes old states while the node runs."""

    name = "pruning"

    def __init__(self, chain: Chain, lanes: Lanes, clock: Clock, keep: int) -> None:
        self._chain = chain
        self._lanes = lanes
        self._clock = clock
        self.rounds = PruningRounds(chain.store, keep)

    async def run(self, ready: Callable[[], None]) -> None:
        """Check after every block whether a pruning round is due."""
        blocks = self._chain.events.subscribe("pruning", 1, WhenFull.DROP_OLDEST)
        ready()
        try:
            async for _ in blocks:
                if self.rounds.is_due(self._chain.head.number):
                    await self._round()
        finally:
            blocks.close()

    async def _round(self) -> None:
        """Run one pruning round, with pauses between the steps."""
        dropped = self.rounds.dropped
        dropped.is_running = True
        try:
            for step in self.rounds.steps(self._chain.head.number):
                lane = self._lanes.write if step.writes else self._lanes.prune
                began = self._clock.monotonic()
                await lane.run(step.take)
                await asyncio.sleep(_REST * (self._clock.monotonic() - began))
        except NativeError as error:
            # log the error and continue, because block import does not depend on pruning
            dropped.failures += 1
            log.error("pruning failed: run `ophion storage check` error=%s", error)
        finally:
            dropped.is_running = False

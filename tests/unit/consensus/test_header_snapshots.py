"""`HeaderSnapshots` gives the same states from memory, from checkpoints and from headers alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from ophion.consensus.header_snapshots import CHECKPOINT_DISTANCE, HeaderSnapshots
from ophion.errors import DecodeError, UnknownParent
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Hash32
from tests.unit.consensus.bft.golden import bft_header


class Numbers:
    """A chain of dummy headers. Each header adds its timestamp to a sum that starts at block 0."""

    def __init__(self, length: int) -> None:
        self.headers: dict[Hash32, HashedHeader] = {}
        self.checkpoints: dict[Hash32, bytes] = {}
        self.applied = 0
        self.head = self.add(None, 1)
        for number in range(1, length + 1):
            self.head = self.add(self.head, number)

    def add(self, parent: HashedHeader | None, timestamp: int) -> HashedHeader:
        number = 0 if parent is None else parent.number + 1
        parent_hash = bytes(32) if parent is None else parent.hash
        hash = number.to_bytes(8, "big") + timestamp.to_bytes(8, "big") + parent_hash[:16]
        header = HashedHeader(bft_header(number=number, timestamp=timestamp, parent_hash=parent_hash), hash)
        self.headers[hash] = header
        return header

    def snapshots(self, begins: Callable[[int], bool] = lambda number: number == 0) -> HeaderSnapshots[int]:
        def applied(state: int, header: HashedHeader) -> int:
            self.applied += 1
            return state + header.timestamp

        def decode(record: bytes) -> int:
            try:
                return int(json.loads(record))
            except ValueError:
                raise DecodeError("not a number", "state") from None

        return HeaderSnapshots(
            lambda header, chain: 0 if begins(header.number) else None,
            applied,
            lambda state: json.dumps(state).encode(),
            decode,
        )

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        return self.headers.get(block_hash)

    def canonical(self, number: int) -> HashedHeader | None:
        return None

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        return None

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        return ()

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        return self.checkpoints.get(block_hash)

    def at(self, number: int) -> HashedHeader:
        cursor = self.head
        while cursor.number > number:
            cursor = self.headers[cursor.parent_hash]
        return cursor

    def keep(self, number: int) -> None:
        self.checkpoints[self.at(number).hash] = self.snapshots().checkpoint(self.at(number), self)


def total(number: int) -> int:
    return number * (number + 1) // 2


def test_a_state_is_computed_once_and_then_remembered() -> None:
    chain = Numbers(20)
    snapshots = chain.snapshots()
    assert snapshots.after(chain.head, chain) == total(20)
    assert snapshots.after(chain.at(7), chain) == total(7)
    assert chain.applied == 20


def test_after_a_restart_the_walk_begins_at_the_nearest_checkpoint() -> None:
    chain = Numbers(3 * CHECKPOINT_DISTANCE + 9)
    chain.keep(CHECKPOINT_DISTANCE)
    chain.keep(3 * CHECKPOINT_DISTANCE)
    chain.applied = 0
    snapshots = chain.snapshots()
    assert snapshots.after(chain.head, chain) == total(chain.head.number)
    assert chain.applied == 9
    assert snapshots.after(chain.at(2 * CHECKPOINT_DISTANCE), chain) == total(2 * CHECKPOINT_DISTANCE)
    assert chain.applied == 9 + CHECKPOINT_DISTANCE


def test_a_checkpoint_of_another_branch_is_not_met() -> None:
    chain = Numbers(2 * CHECKPOINT_DISTANCE)
    chain.keep(2 * CHECKPOINT_DISTANCE)
    rival = chain.at(2 * CHECKPOINT_DISTANCE - 3)
    for _ in range(5):
        rival = chain.add(rival, 1000)
    assert chain.snapshots().after(rival, chain) == total(2 * CHECKPOINT_DISTANCE - 3) + 5000
    chain.head = rival
    chain.keep(2 * CHECKPOINT_DISTANCE)
    assert len(chain.checkpoints) == 2
    assert chain.snapshots().after(rival, chain) == total(2 * CHECKPOINT_DISTANCE - 3) + 5000


def test_a_checkpoint_that_cannot_be_read_is_computed_again() -> None:
    chain = Numbers(CHECKPOINT_DISTANCE + 1)
    chain.checkpoints[chain.at(CHECKPOINT_DISTANCE).hash] = b"of another version"
    assert chain.snapshots().after(chain.head, chain) == total(CHECKPOINT_DISTANCE + 1)


def test_snapshots_restart_at_a_block_with_a_transition_despite_its_checkpoint() -> None:
    """`HeaderSnapshots` restarts at a block with a transition even if the block has a checkpoint. The transition may
    have been added to the genesis file after the checkpoint was stored.
    """
    chain = Numbers(CHECKPOINT_DISTANCE)
    chain.keep(CHECKPOINT_DISTANCE)
    assert chain.snapshots(lambda number: number in (0, CHECKPOINT_DISTANCE)).after(chain.head, chain) == 0


def test_memory_is_bounded() -> None:
    chain = Numbers(3000)
    snapshots = chain.snapshots()
    snapshots.after(chain.head, chain)
    assert len(snapshots._known) == 1024


def test_a_hole_in_the_chain_is_an_unknown_parent() -> None:
    chain = Numbers(5)
    orphan = HashedHeader(replace(chain.head.header, parent_hash=b"\1" * 32, number=6), b"\2" * 32)
    with pytest.raises(UnknownParent):
        chain.snapshots().after(orphan, chain)

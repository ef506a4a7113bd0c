"""Pruning removes old states and leaves all other data intact, for any events between the steps of a round."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import Struct, structs

from ophion.chain import pruning
from ophion.chain.pruning import PruningRounds, StatePruner, has_dropped_states
from ophion.errors import MissingStateError
from ophion.native.crypto import keccak256
from ophion.native.exceptions import MissingState
from ophion.native.store import Store, open_store
from ophion.runtime.clock import SystemClock
from ophion.runtime.thread_pools import ThreadLanes
from ophion.testing.node_core import open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until
from tests.unit.native.worlds import ADDRESSES, KEYS, Built, World, signed

COUNTER = b"\xcc" * 20


class Make(Struct):
    """Makes test chains whose databases write trie branches in full or as deltas."""

    writes_changes: bool

    def __call__(self, path: Path) -> World:
        made = World(path)
        if self.writes_changes:
            made.store.write_changes()
        return made


@pytest.fixture(params=[False, True], ids=["whole nodes", "changes of nodes"])
def make(request: pytest.FixtureRequest) -> Make:
    return Make(request.param)


def account(number: int) -> bytes:
    return number.to_bytes(4, "big") * 5


def grown(world: World, length: int, begin: Built | None = None, salt: bytes = b"") -> list[Built]:
    """Make uncommitted blocks, each with a transfer to a new account and a contract that writes."""
    blocks = []
    parent = begin or world.genesis
    for _ in range(length):
        number = parent.number
        raws = [signed(KEYS[0], number, account(number * 10 + len(salt)), 1), signed(KEYS[1], number, COUNTER)]
        blocks.append(world.block(parent, raws, salt=salt))
        parent = blocks[-1]
    return blocks


def nodes(store: Store) -> int:
    return {name: entries for name, entries, _ in store.usage()}["node_rows"]


def pruned(store: Store, keep: int, most: int = 1_000_000) -> tuple[int, int]:
    """Run a whole round. Returns the numbers of removed states and deleted nodes."""
    head = store.head()
    assert head is not None
    round = store.begin_pruning(head[1] - keep)
    for part in (round.forget, round.mark, round.sweep):
        while part(most):
            pass
    return round.forgotten, round.freed


def is_there(store: Store, block: Built) -> bool:
    try:
        state = store.state(block.execution.state_root)
    except MissingState:
        return False
    # read the whole state, because every listed state must be complete
    rows, following = state.accounts(bytes(32), 10_000)
    assert following is None
    for address in (row[1] for row in rows):
        assert address is not None
        state.storage_range(address, bytes(32), 1_000)
    return True


@pytest.mark.parametrize("most", [1, 7, 1_000_000])
def test_old_states_go_and_the_others_stay(make: Make, tmp_path: Path, most: int) -> None:
    world = make(tmp_path / "db")
    blocks = grown(world, 40)
    world.extend(*blocks)
    before = nodes(world.store)
    assert pruned(world.store, 10, most) == (29, before - nodes(world.store))
    # a stored delta keeps the node version that it refers to, so pruning frees fewer nodes
    assert nodes(world.store) < (before * 2 // 3 if make.writes_changes else before // 2)
    # the chain head, the ten blocks before the head and genesis keep their states
    assert [is_there(world.store, block) for block in blocks] == [False] * 29 + [True] * 11
    assert is_there(world.store, world.genesis)
    assert world.store.check(10) == []
    assert pruned(world.store, 10, most) == (0, 0)
    after = grown(world, 1, blocks[-1])
    world.extend(*after)
    assert world.store.latest().nonce(ADDRESSES[1]) == 41
    assert world.store.check(10) == []


def test_what_stays_is_packed(make: Make, tmp_path: Path) -> None:
    """After pruning, the average trie node takes less space, because large branches are deleted and the leaves fill
    their pages.
    """

    def bytes_each() -> float:
        [(entries, size)] = [(entries, size) for name, entries, size in world.store.usage() if name == "node_rows"]
        return size / entries

    world = make(tmp_path / "db")
    parent = world.genesis
    for number in range(200):
        raws = [
            signed(KEYS[0], number * 10 + offset, keccak256(account(number * 10 + offset))[:20], 1)
            for offset in range(10)
        ]
        parent = world.block(parent, raws)
        world.extend(parent)
    before = bytes_each()
    pruned(world.store, 2, 500)
    assert bytes_each() < before
    assert world.store.check(10) == []


def test_changes_of_nodes_are_shorter_and_say_the_same(tmp_path: Path) -> None:
    """With deltas, every state is complete and takes less space, and base versions of deltas survive pruning."""

    def size(store: Store) -> int:
        return next(size for name, _, size in store.usage() if name == "node_rows")

    def filled(world: World) -> list[Built]:
        blocks = [world.genesis]
        for number in range(150):
            to = keccak256(account(number))[:20]
            raws = [signed(KEYS[0], number, to, 1), signed(KEYS[1], number, COUNTER)]
            blocks.append(world.block(blocks[-1], raws))
            world.extend(blocks[-1])
        assert all(is_there(world.store, block) for block in blocks)
        assert world.store.check(10) == []
        return blocks

    whole, brief = World(tmp_path / "whole"), World(tmp_path / "brief")
    brief.store.write_changes()
    blocks = filled(brief)
    assert [block.hash for block in blocks] == [block.hash for block in filled(whole)]
    assert size(brief.store) < size(whole.store) * 2 // 3
    for keep in (100, 60, 30, 7, 1, 0):
        pruned(brief.store, keep, 50)
        assert brief.store.check(10) == [], keep
        assert [is_there(brief.store, block) for block in blocks[1:]] == [False] * (149 - keep) + [True] * (keep + 1)
    root, last = blocks[-1].execution.state_root, replace(blocks[-1], execution=None)  # type: ignore[arg-type]
    brief.store.close()
    del blocks, brief.genesis
    again = World(tmp_path / "brief")
    block = again.block(last, [signed(KEYS[0], 150, account(7), 1)], state=again.store.state(root))
    again.store.commit([block.new_block()], [], [block.hash])
    pruned(again.store, 0)
    assert again.store.check(10) == []


def test_a_pruned_database_can_be_opened_and_goes_on(make: Make, tmp_path: Path) -> None:
    world = make(tmp_path / "db")
    blocks = grown(world, 30)
    world.extend(*blocks)
    pruned(world.store, 5)
    root, last = blocks[-1].execution.state_root, replace(blocks[-1], execution=None)  # type: ignore[arg-type]
    world.store.close()
    del blocks, world.genesis
    again = make(tmp_path / "db")
    block = again.block(last, [signed(KEYS[0], 30, account(7), 1)], state=again.store.state(root))
    again.store.commit([block.new_block()], [], [block.hash])
    assert again.store.latest().balance(account(7)) == 1
    assert again.store.check(10) == []


def test_branches_within_the_history_survive_and_become_the_chain(make: Make, tmp_path: Path) -> None:
    world = make(tmp_path / "db")
    trunk = grown(world, 20)
    world.extend(*trunk)
    main = grown(world, 5, trunk[-1])
    side = grown(world, 4, trunk[-1], salt=b"side")
    world.extend(*main)
    world.store.commit([block.new_block() for block in side], [], [])
    old = grown(world, 3, trunk[4], salt=b"old")
    world.store.commit([block.new_block() for block in old], [], [])
    pruned(world.store, 8)
    assert all(is_there(world.store, block) for block in main + side)
    assert not any(is_there(world.store, block) for block in old)
    longer = grown(world, 3, side[-1], salt=b"side")
    world.store.commit(
        [block.new_block() for block in longer],
        [block.hash for block in reversed(main)],
        [block.hash for block in side + longer],
    )
    assert world.store.check(10) == []
    pruned(world.store, 3)
    assert [is_there(world.store, block) for block in main] == [False] * 3 + [True] * 2
    assert all(is_there(world.store, block) for block in longer)
    assert world.store.check(10) == []


def test_siblings_with_the_same_state_keep_it_for_each_other(make: Make, tmp_path: Path) -> None:
    """Two sibling blocks have the same state. The state is written twice. Blocks on either branch refer to the nodes of
    that branch.
    """
    world = make(tmp_path / "db")
    trunk = grown(world, 20)
    world.extend(*trunk)
    raws = [signed(KEYS[0], 20, account(1), 1)]
    one, other = (world.block(trunk[-1], raws, salt=salt) for salt in (b"one", b"other"))
    assert one.execution.state_root == other.execution.state_root
    world.extend(one)
    world.store.commit([other.new_block()], [], [])
    pruned(world.store, 2)
    on_one, on_other = (world.block(parent, [signed(KEYS[2], 0, account(2), 1)], salt=b"x") for parent in (one, other))
    world.extend(on_one)
    world.store.commit([on_other.new_block()], [], [])
    assert world.store.check(10) == []
    for parent in (on_one, on_other):
        assert is_there(world.store, parent)


def test_a_state_that_recurs_is_kept_for_its_last_block(make: Make, tmp_path: Path) -> None:
    world = make(tmp_path / "db")
    blocks = grown(world, 10)
    world.extend(*blocks)
    parent = blocks[-1]
    for _ in range(30):
        empty = world.block(parent, [])
        world.extend(empty)
        parent = empty
    pruned(world.store, 3)
    assert is_there(world.store, parent)
    assert world.store.check(10) == []


def test_blocks_come_in_between_the_steps_of_a_round(make: Make, tmp_path: Path) -> None:
    """Blocks are committed at random moments of a pruning round. Blocks executed before the round are written after the
    round.
    """
    for seed in range(20):
        order = random.Random(seed)
        world = make(tmp_path / f"db{seed}")
        blocks = grown(world, 25)
        world.extend(*blocks)
        waiting = grown(world, 2, blocks[-1], salt=b"waiting")
        round = world.store.begin_pruning(20)
        head = blocks[-1]
        for part in (round.forget, round.mark, round.sweep):
            has_more = True
            while has_more:
                has_more = part(order.choice((1, 5, 50)))
                if order.random() < 0.1:
                    following = grown(world, 1, head)
                    world.extend(*following)
                    head = following[0]
        world.store.commit([block.new_block() for block in waiting], [], [])
        assert world.store.check(10) == [], seed
        assert all(is_there(world.store, block) for block in (*waiting, head, *blocks[-5:]))


def test_a_round_that_is_given_up_anywhere_leaves_a_sound_database(make: Make, tmp_path: Path) -> None:
    for stop in range(0, 60, 3):
        world = make(tmp_path / f"db{stop}")
        world.extend(*grown(world, 20))
        round = world.store.begin_pruning(15)
        taken = 0
        for part in (round.forget, round.mark, round.sweep):
            while taken < stop and part(3):
                taken += 1
        world.store.close()
        del round, part, world
        store = open_store(tmp_path / f"db{stop}")
        assert store.check(10) == [], stop
        pruned(store, 5)
        assert store.check(10) == [], stop
        store.close()


def test_nothing_is_deleted_before_everything_is_marked(make: Make, tmp_path: Path) -> None:
    world = make(tmp_path / "db")
    world.extend(*grown(world, 20))
    round = world.store.begin_pruning(15)
    with pytest.raises(Exception, match="before mark has finished"):
        round.sweep(100)
    assert round.mark(1)
    with pytest.raises(Exception, match="before mark has finished"):
        round.sweep(100)
    assert world.store.check(10) == []


def test_a_block_on_a_state_that_went_meanwhile_is_refused_and_nothing_breaks(make: Make, tmp_path: Path) -> None:
    world = make(tmp_path / "db")
    blocks = grown(world, 30)
    world.extend(*blocks)
    late = world.block(blocks[3], [signed(KEYS[0], 4, account(1), 1)], salt=b"late")
    pruned(world.store, 10)
    with pytest.raises(MissingState):
        world.store.commit([late.new_block()], [], [])
    world.extend(*grown(world, 1, blocks[-1]))
    assert world.store.check(10) == []


def test_a_state_that_is_being_read_when_it_goes_is_missing_not_damaged(make: Make, tmp_path: Path) -> None:
    world = make(tmp_path / "db")
    blocks = grown(world, 30)
    world.extend(*blocks)
    old = world.store.state(blocks[3].execution.state_root)
    assert old.nonce(ADDRESSES[0]) == 4
    pruned(world.store, 10)
    with pytest.raises(MissingState):
        old.nonce(ADDRESSES[0])


def test_a_round_is_due_when_enough_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_LEAST", 50)
    world = World(tmp_path / "db")
    rounds = PruningRounds(world.store, 16)
    blocks = grown(world, 16)
    world.extend(*blocks)
    assert not rounds.is_due(16), "nothing is old yet"
    more = grown(world, 4, blocks[-1])
    world.extend(*more)
    assert rounds.is_due(20), "after a start nobody knows"
    rounds.catch_up(20)
    assert not rounds.is_due(20)
    world.extend(*grown(world, 20, more[-1]))
    assert rounds.is_due(40)
    assert world.store.check(10) == []


def test_what_was_dropped_is_counted(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    rounds = PruningRounds(world.store, 16)
    blocks = grown(world, 20)
    world.extend(*blocks)
    before = nodes(world.store)
    steps = rounds.steps(20)
    next(steps).take()  # the step begins a pruning round
    next(steps).take()  # the step removes old state roots
    next(steps)
    assert (rounds.dropped.rounds, rounds.dropped.sweeps, rounds.dropped.states) == (1, 0, 3), "a round that goes on"
    for step in steps:
        step.take()
    first = structs.replace(rounds.dropped)
    assert (first.sweeps, first.freed) == (1, before - nodes(world.store))
    assert first.marked > 0
    world.extend(*grown(world, 4, blocks[-1]))
    for step in rounds.steps(24):
        step.take()
    again = rounds.dropped
    assert (again.rounds, again.sweeps, again.states, again.failures) == (2, 2, 7, 0)
    assert again.marked > first.marked
    assert again.freed > first.freed


def test_a_node_drops_states_while_it_makes_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_LEAST", 20)
    lanes = ThreadLanes()
    with open_core(tmp_path, lanes=lanes) as core:
        chain = core.chain
        chain.state_history = 16
        pruner = StatePruner(chain, lanes, SystemClock(), 16)

        async def story() -> None:
            is_ready = asyncio.Event()
            service = asyncio.create_task(pruner.run(is_ready.set))
            await is_ready.wait()
            for nonce in range(60):
                await core.mine(legacy_transaction(DEV_KEYS[1], nonce, to=account(nonce), value=1))
            first = chain.canonical(1)
            assert first is not None
            await until(lambda: _is_gone(chain.store, first.header.state_root))
            service.cancel()
            await asyncio.wait({service})

        asyncio.run(story())
        assert chain.store.check(10) == []
        stored_states = [number for number in range(61) if _has_state(chain, number)]
        assert stored_states == [0, *range(60 - 16, 61)]
    lanes.close()


def _is_gone(store: Store, root: bytes) -> bool:
    try:
        store.state(root)
    except MissingState:
        return True
    return False


def _has_state(chain: object, number: int) -> bool:
    header = chain.canonical(number)  # type: ignore[attr-defined]
    try:
        chain.state(header.header).balance(bytes(20))  # type: ignore[attr-defined]
    except MissingStateError:
        return False
    return True


def test_a_database_shows_whether_states_were_dropped(tmp_path: Path, make: Make) -> None:
    world = make(tmp_path)
    assert not has_dropped_states(world.store)
    # blocks without transactions have the state of genesis, which is always stored
    still = [world.block(world.genesis, [])]
    for _ in range(4):
        still.append(world.block(still[-1], []))
    world.extend(*still)
    assert not has_dropped_states(world.store)
    moving = still[-1:]
    for nonce in range(30):
        moving.append(world.block(moving[-1], [signed(KEYS[0], nonce, account(nonce + 1), 1)]))
    world.extend(*moving[1:])
    assert not has_dropped_states(world.store)
    rounds = PruningRounds(world.store, 16)
    rounds.catch_up(35)
    assert rounds.dropped.states
    assert has_dropped_states(world.store)
    world.store.close()


def test_a_round_that_was_interrupted_shows_too(tmp_path: Path, make: Make) -> None:
    world = make(tmp_path)
    world.extend(*grown(world, 300))
    round = world.store.begin_pruning(290)
    assert round.forget(40)
    assert 0 < round.forgotten < 280
    assert has_dropped_states(world.store)
    world.store.close()

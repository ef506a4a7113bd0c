"""Tests the route from one head to another."""

from __future__ import annotations

import pytest

from ophion.chain.fork_choice import head_change
from ophion.consensus.engine import BlockPreferences, Tip
from ophion.consensus.pow import PowEngine
from ophion.errors import UnknownParent
from ophion.primitives.header import HashedHeader
from tests.unit.consensus.stories import MemoryChain, genesis


class Tree:
    """A tree of branches on one genesis block."""

    def __init__(self) -> None:
        first = genesis({"ethash": {}}, difficulty=2**20)
        self.engine = PowEngine(first.spec, verifies_work=False)
        self.chain = MemoryChain(self.engine, first)

    def branch(self, parent: HashedHeader, length: int, name: bytes) -> list[HashedHeader]:
        headers = []
        for _ in range(length):
            preferences = BlockPreferences(timestamp=0, author=bytes(20), extra_data=name)
            parent = self.chain.add(self.engine.hashed(self.engine.prepare(parent, preferences, self.chain)))
            headers.append(parent)
        return headers


def test_growth_removes_nothing() -> None:
    tree = Tree()
    blocks = tree.branch(tree.chain.genesis, 3, b"a")
    change = head_change(Tip(blocks[2], 7), tree.chain.genesis, tree.chain)
    assert (change.removed, change.added) == ((), tuple(blocks))
    assert change.tip == Tip(blocks[2], 7)


@pytest.mark.parametrize(("old", "new"), [(2, 3), (3, 2), (2, 2), (1, 5), (5, 1)])
def test_a_reorganisation_goes_through_the_last_common_block(old: int, new: int) -> None:
    tree = Tree()
    trunk = tree.branch(tree.chain.genesis, 2, b"trunk")
    left = tree.branch(trunk[-1], old, b"left")
    right = tree.branch(trunk[-1], new, b"right")
    change = head_change(Tip(right[-1], 0), left[-1], tree.chain)
    assert change.removed == tuple(reversed(left))
    assert change.added == tuple(right)


def test_going_back_to_an_ancestor_only_removes() -> None:
    tree = Tree()
    blocks = tree.branch(tree.chain.genesis, 3, b"a")
    change = head_change(Tip(blocks[0], 0), blocks[2], tree.chain)
    assert (change.removed, change.added) == ((blocks[2], blocks[1]), ())


def test_branches_without_a_common_block_are_an_error() -> None:
    tree, other = Tree(), Tree()
    blocks = tree.branch(tree.chain.genesis, 2, b"a")
    foreign_block = other.branch(other.chain.genesis, 2, b"b")
    with pytest.raises(UnknownParent):
        head_change(Tip(foreign_block[1], 0), blocks[1], tree.chain)

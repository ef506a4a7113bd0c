"""Tests headers after the merge, and the transition from proof of work."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chainspec.forks import Milestone
from ophion.consensus.engine import BlockPreferences, Tip
from ophion.consensus.merge import MergeEngine
from ophion.consensus.pow import PowEngine
from ophion.errors import GenesisError, InvalidBlock, InvalidHeader, UnknownParent
from ophion.primitives.header import HashedHeader
from tests.unit.consensus.stories import FAR, MemoryChain, genesis

WORK = 131_072


class MergeStory:
    """A chain with London from the start, and the merge after two proof-of-work blocks."""

    def __init__(self, terminal: int = 3 * WORK, **config: Any) -> None:
        first = genesis(
            {"ethash": {}, "londonBlock": 0, "terminalTotalDifficulty": terminal, **config}, difficulty=WORK
        )
        self.spec = first.spec
        self.engine = MergeEngine(first.spec, PowEngine(first.spec, verifies_work=False))
        self.chain = MemoryChain(self.engine, first)

    def block(self, parent: HashedHeader | None = None, elapsed: int = 20, **changes: Any) -> HashedHeader:
        parent = parent or self.chain.head
        preferences = BlockPreferences(timestamp=parent.timestamp + elapsed, author=b"\x01" * 20, mix_hash=b"\x09" * 32)
        return self.engine.hashed(replace(self.engine.prepare(parent, preferences, self.chain), **changes))

    def grow(self, count: int) -> None:
        for _ in range(count):
            self.chain.extend(self.block())


def test_work_ends_with_the_block_that_reaches_the_terminal_difficulty() -> None:
    story = MergeStory()
    story.grow(4)
    difficulties = [story.chain.canonical(number).header.difficulty for number in range(5)]  # type: ignore[union-attr]
    assert difficulties == [WORK, WORK, WORK, 0, 0]
    assert story.spec.fork_of(story.chain.head.header).milestone is Milestone.PARIS
    assert story.chain.head.header.mix_hash == b"\x09" * 32


def test_a_merged_header_on_a_parent_that_has_not_merged_is_refused() -> None:
    story = MergeStory()
    with pytest.raises(InvalidHeader, match=f"difficulty: got 0, expected {WORK}"):
        story.chain.extend(story.block(difficulty=0))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"difficulty": WORK}, "difficulty after the merge"),
        ({"nonce": b"\x00" * 7 + b"\x01"}, "nonce after the merge"),
        ({"ommers_hash": b"\x01" * 32}, "ommers hash"),
        ({"extra_data": bytes(33)}, "extra data length"),
        ({"timestamp": 40}, "timestamp"),
        ({"gas_used": 2**40}, "gas used"),
        ({"gas_limit": 1}, "gas limit"),
        ({"base_fee_per_gas": 1}, "base fee"),
        ({"base_fee_per_gas": None}, "base fee per gas"),
        ({"withdrawals_root": bytes(32)}, "withdrawals root"),
        ({"number": 7}, "number"),
    ],
)
def test_constants_and_shared_rules_hold_after_the_merge(changes: dict[str, Any], rule: str) -> None:
    story = MergeStory()
    story.grow(2)
    with pytest.raises(InvalidHeader) as caught:
        story.chain.extend(story.block(**changes))
    assert caught.value.rule == rule


def test_later_forks_bring_their_fields() -> None:
    story = MergeStory(terminal=0, shanghaiTime=20, cancunTime=40, pragueTime=60, osakaTime=80)
    lengths = []
    for _ in range(4):
        story.grow(1)
        lengths.append(len(story.chain.head.header.encoded_fields(b"")))
    assert lengths == [17, 20, 21, 21]
    with pytest.raises(InvalidHeader, match="parent beacon block root: got absent"):
        story.chain.extend(story.block(parent_beacon_block_root=None, requests_hash=None))
    with pytest.raises(InvalidHeader, match="excess blob gas"):
        story.chain.extend(story.block(excess_blob_gas=131072))


def test_a_network_may_begin_merged() -> None:
    story = MergeStory(terminal=0)
    story.grow(1)
    assert story.chain.head.header.difficulty == 0


def test_the_future_is_too_early() -> None:
    story = MergeStory(terminal=0)
    block = story.block()
    with pytest.raises(InvalidHeader, match="timestamp in the future"):
        story.engine.verify(block, story.chain.genesis, story.chain, block.timestamp - 16)


def test_rewards_and_ommers_end_with_the_merge() -> None:
    story = MergeStory()
    story.grow(3)
    worked, merged = story.chain.canonical(2), story.chain.head
    assert worked is not None
    assert story.engine.rewards(worked, ()) == [(b"\x01" * 20, 2 * 10**18)]
    assert story.engine.rewards(merged, ()) == []
    story.engine.verify_ommers(worked, (), story.chain)
    story.engine.verify_ommers(merged, (), story.chain)
    with pytest.raises(InvalidBlock, match="number of ommers after the merge"):
        story.engine.verify_ommers(merged, (worked.header,), story.chain)


def test_after_the_merge_the_last_block_handed_over_is_the_head() -> None:
    story = MergeStory()
    story.grow(2)
    worked = Tip(story.chain.head, 10)
    story.grow(1)
    merged = Tip(story.chain.head, 10)
    prefers = story.engine.prefers
    assert prefers(merged, worked, story.chain)
    assert prefers(merged, merged, story.chain)
    assert not prefers(worked, merged, story.chain)
    assert prefers(Tip(worked.header, 11), worked, story.chain)
    assert not prefers(worked, worked, story.chain)


def test_authors_are_the_coinbase_and_members_do_not_exist() -> None:
    story = MergeStory()
    story.grow(3)
    for header in (story.chain.canonical(1), story.chain.head):
        assert header is not None
        assert story.engine.author(header) == story.engine.beneficiary(header) == b"\x01" * 20
        assert story.engine.members(header, story.chain) == ()
        assert story.engine.attach(header.header, []) == header.header
    assert len(story.engine.signing_hash(story.chain.head.header)) == 32


def test_a_parent_without_total_difficulty_cannot_be_judged() -> None:
    story = MergeStory()
    unknown_parent = HashedHeader(story.chain.genesis.header, b"\x01" * 32)
    with pytest.raises(UnknownParent):
        story.engine.verify(story.block(), unknown_parent, story.chain, FAR)


def test_the_engine_needs_a_terminal_difficulty() -> None:
    spec = genesis({"ethash": {}}).spec
    with pytest.raises(GenesisError, match="terminalTotalDifficulty"):
        MergeEngine(spec, PowEngine(spec))


def test_genesis_is_checked_by_the_engine_before_the_merge_only() -> None:
    first = genesis({"ethash": {}, "terminalTotalDifficulty": 0}, difficulty=0)
    MergeEngine(first.spec, PowEngine(first.spec)).check_genesis(first.header(bytes(32)))

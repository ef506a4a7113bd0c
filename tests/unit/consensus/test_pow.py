"""Tests proof of work: real ethash of a public chain, ommers, rewards, the DAO rule, fixed difficulty."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chainspec.dev_network import dev_genesis
from ophion.chainspec.forks import ForkSchedule, Milestone
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine import BlockPreferences, Tip
from ophion.consensus.pow import PowEngine, block_reward, target
from ophion.errors import GenesisError, InvalidBlock, InvalidHeader
from ophion.native.ethash import ethash_compute
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import WEI_PER_ETHER
from tests.conftest import DATA
from tests.unit.consensus.stories import FAR, MemoryChain, genesis


def public_headers() -> list[Header]:
    data = (DATA / "original-chain" / "test.blocks").read_bytes()
    headers, offset = [], 0
    while offset < len(data):
        end = rlp.item_end(data, offset)
        headers.append(Header.decode(rlp.split_list(data[offset:end], 1024)[0]))
        offset = end
    return headers


def public_engine() -> PowEngine:
    return PowEngine(parse_genesis((DATA / "original-chain" / "genesis.json").read_bytes()).spec)


def test_real_work_of_a_public_chain_is_accepted() -> None:
    engine = public_engine()
    headers = [engine.hashed(header) for header in public_headers()[:4]]
    chain = MemoryChain(engine, genesis({"ethash": {}}))
    for parent, header in pairwise(headers):
        engine.verify(header, parent, chain, FAR)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"nonce": bytes(8)}, "mix hash"),
        ({"mix_hash": bytes(32)}, "mix hash"),
        ({"extra_data": b"other"}, "mix hash"),
        ({"difficulty": 2**255}, "difficulty"),
        ({"timestamp": 1}, "timestamp"),
        ({"extra_data": bytes(33)}, "extra data length"),
        ({"gas_limit": 1}, "gas used"),
        ({"gas_limit": 10_000_000}, "gas limit"),
        ({"base_fee_per_gas": 1}, "base fee per gas"),
    ],
)
def test_any_change_of_a_worked_header_is_refused(changes: dict[str, Any], rule: str) -> None:
    engine = public_engine()
    headers = public_headers()
    parent = engine.hashed(headers[0])
    changed = engine.hashed(replace(headers[1], **changes))
    with pytest.raises(InvalidHeader) as caught:
        engine.verify(changed, parent, MemoryChain(engine, genesis({"ethash": {}})), FAR)
    assert caught.value.rule == rule


def test_a_result_above_the_target_is_no_work() -> None:
    engine = public_engine()
    hard = replace(public_headers()[1], difficulty=2**250)
    mix_hash, _ = ethash_compute(engine.signing_hash(hard), int.from_bytes(hard.nonce, "big"), hard.number)
    with pytest.raises(InvalidHeader, match="proof of work"):
        engine.check_work(replace(hard, mix_hash=mix_hash))
    assert target(2) == 2**255


# --- ommers ---


class OmmerStory:
    """A chain of ten blocks without proof of work, each with a side block."""

    def __init__(self) -> None:
        first = genesis({"ethash": {}}, difficulty=2**20)
        self.engine = PowEngine(first.spec, verifies_work=False)
        self.chain = MemoryChain(self.engine, first)
        self.sides: list[HashedHeader] = []
        for _ in range(10):
            parent = self.chain.head
            self.sides.append(self.block(parent, b"side"))
            self.chain.extend(self.block(parent, b"main"))

    def block(self, parent: HashedHeader, extra: bytes, **changes: Any) -> HashedHeader:
        preferences = BlockPreferences(timestamp=parent.timestamp + 10, author=b"\x05" * 20, extra_data=extra)
        return self.engine.hashed(replace(self.engine.prepare(parent, preferences, self.chain), **changes))

    def check(self, *ommers: HashedHeader) -> None:
        block = self.block(self.chain.head, b"next")
        self.engine.verify_ommers(block, [ommer.header for ommer in ommers], self.chain)


def test_ommers_may_be_one_to_six_generations_old() -> None:
    story = OmmerStory()
    for depth in range(1, 7):
        story.check(story.sides[-depth])
    with pytest.raises(InvalidBlock, match="ommer's parent is no ancestor within reach"):
        story.check(story.sides[-7])


def test_two_ommers_are_the_most() -> None:
    story = OmmerStory()
    story.check(story.sides[-1], story.sides[-2])
    with pytest.raises(InvalidBlock, match="number of ommers: got 3"):
        story.check(*story.sides[-3:])


def test_an_ommer_counts_once() -> None:
    story = OmmerStory()
    with pytest.raises(InvalidBlock, match="ommer included before"):
        story.check(story.sides[-1], story.sides[-1])
    including = story.block(story.chain.head, b"x", ommers_hash=b"\x01" * 32)
    story.chain.add(including, [story.sides[-1].header])
    with pytest.raises(InvalidBlock, match="ommer included before"):
        story.check(story.sides[-1])


def test_an_ancestor_the_block_itself_and_a_sibling_are_no_ommers() -> None:
    story = OmmerStory()
    ancestor = story.chain.canonical(8)
    assert ancestor is not None
    with pytest.raises(InvalidBlock, match="ommer is an ancestor"):
        story.check(ancestor)
    sibling = story.block(story.chain.head, b"sibling")
    with pytest.raises(InvalidBlock, match="no ancestor within reach"):
        story.check(sibling)
    block = story.block(story.chain.head, b"next")
    with pytest.raises(InvalidBlock, match="ommer included before"):
        story.engine.verify_ommers(block, [block.header], story.chain)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"difficulty": 5}, "difficulty"),
        ({"number": 9}, "number"),
        ({"timestamp": 0}, "timestamp"),
        ({"gas_limit": 1}, "gas limit"),
        ({"extra_data": bytes(40)}, "extra data length"),
    ],
)
def test_an_ommer_must_be_a_valid_header_itself(changes: dict[str, Any], rule: str) -> None:
    story = OmmerStory()
    parent = story.chain.canonical(9)
    assert parent is not None
    with pytest.raises(InvalidBlock, match=f"ommer 0x[0-9a-f]+: {rule}"):
        story.check(story.block(parent, b"bad", **changes))


# --- rewards ---


@pytest.mark.parametrize(
    ("milestone", "ether"),
    [
        (Milestone.FRONTIER, 5),
        (Milestone.SPURIOUS, 5),
        (Milestone.BYZANTIUM, 3),
        (Milestone.CONSTANTINOPLE, 2),
        (Milestone.LONDON, 2),
    ],
)
def test_the_reward_shrinks_with_the_forks(milestone: Milestone, ether: int) -> None:
    assert block_reward(ForkSchedule({milestone: 0}).at(0, 0)) == ether * WEI_PER_ETHER


def test_ommers_are_rewarded_by_age_and_their_includer_by_number() -> None:
    story = OmmerStory()
    block = story.block(story.chain.head, b"next")
    ommers = [replace(side.header, coinbase=bytes([index]) * 20) for index, side in enumerate(story.sides)]
    rewards = story.engine.rewards(block, [ommers[-1], ommers[-6]])
    ether = WEI_PER_ETHER
    assert rewards == [
        (b"\x05" * 20, 5 * ether + 2 * (5 * ether // 32)),
        (b"\x09" * 20, 5 * ether * 7 // 8),
        (b"\x04" * 20, 5 * ether * 2 // 8),
    ]


# --- other rules ---


def test_a_fixed_difficulty_replaces_the_formulas() -> None:
    first = genesis({"ethash": {"fixeddifficulty": 100}})
    engine = PowEngine(first.spec, verifies_work=False)
    chain = MemoryChain(engine, first)
    draft = engine.prepare(chain.genesis, BlockPreferences(timestamp=5, author=bytes(20)), chain)
    assert draft.difficulty == 100
    with pytest.raises(InvalidHeader, match="difficulty: got 131072, expected 100"):
        chain.extend(engine.hashed(replace(draft, difficulty=131072)))
    chain.extend(engine.hashed(draft))


@pytest.mark.parametrize("is_dev", [True, False])
@pytest.mark.parametrize("equal_timestamps", [True, False])
def test_blocks_share_a_second_on_the_dev_network_only_and_when_asked_to(is_dev: bool, equal_timestamps: bool) -> None:
    first = dev_genesis() if is_dev else genesis({"ethash": {"fixeddifficulty": 100}})
    engine = PowEngine(first.spec, verifies_work=False, equal_timestamps=equal_timestamps)
    chain = MemoryChain(engine, first)
    block = engine.prepare(chain.genesis, BlockPreferences(timestamp=0, author=bytes(20)), chain)
    assert block.timestamp == (0 if is_dev and equal_timestamps else 1)
    engine.verify(engine.hashed(block), chain.genesis, chain, 0)
    equal = engine.hashed(replace(block, timestamp=0))
    if is_dev:
        engine.verify(equal, chain.genesis, chain, 0)
    else:
        with pytest.raises(InvalidHeader, match="timestamp"):
            engine.verify(equal, chain.genesis, chain, 0)


def test_the_time_of_the_dev_network_may_run_ahead_of_the_clock() -> None:
    first = dev_genesis()
    engine = PowEngine(first.spec, verifies_work=False)
    chain = MemoryChain(engine, first)
    block = engine.prepare(chain.genesis, BlockPreferences(timestamp=100_000, author=bytes(20)), chain)
    engine.verify(engine.hashed(block), chain.genesis, chain, now=5)


def test_the_dao_fork_marks_ten_blocks() -> None:
    first = genesis({"ethash": {}, "homesteadBlock": 0, "daoForkBlock": 3}, difficulty=2**20)
    engine = PowEngine(first.spec, verifies_work=False)
    chain = MemoryChain(engine, first)
    for number in range(1, 15):
        preferences = BlockPreferences(timestamp=chain.head.timestamp + 10, author=bytes(20), extra_data=b"mine")
        draft = engine.prepare(chain.head, preferences, chain)
        marked = 3 <= number < 13
        assert draft.extra_data == (b"dao-hard-fork" if marked else b"mine")
        if marked:
            with pytest.raises(InvalidHeader, match="extra data of the DAO fork"):
                chain.extend(engine.hashed(replace(draft, extra_data=b"mine")))
        chain.extend(engine.hashed(draft))


def test_the_future_begins_fifteen_seconds_from_now() -> None:
    story = OmmerStory()
    block = story.block(story.chain.head, b"next")
    story.engine.verify(block, story.chain.head, story.chain, block.timestamp - 15)
    with pytest.raises(InvalidHeader, match="timestamp in the future"):
        story.engine.verify(block, story.chain.head, story.chain, block.timestamp - 16)


def test_more_total_difficulty_wins_and_the_first_seen_stays_on_a_tie() -> None:
    story = OmmerStory()
    head = story.chain.head
    assert story.engine.prefers(Tip(head, 11), Tip(head, 10), story.chain)
    assert not story.engine.prefers(Tip(head, 10), Tip(head, 10), story.chain)


def test_the_work_is_done_for_everything_but_nonce_and_mix_hash() -> None:
    engine = public_engine()
    header = replace(public_headers()[1], base_fee_per_gas=5)
    work = engine.signing_hash(header)
    assert engine.signing_hash(replace(header, nonce=bytes(8), mix_hash=bytes(32))) == work
    assert engine.signing_hash(replace(header, base_fee_per_gas=6)) != work


def test_any_node_may_mine_and_blocks_are_unsigned() -> None:
    story = OmmerStory()
    assert story.engine.members(story.chain.head, story.chain) == ()
    assert story.engine.attach(story.chain.head.header, []) is story.chain.head.header
    assert story.engine.author(story.chain.head) == story.engine.beneficiary(story.chain.head) == b"\x05" * 20


def test_a_genesis_without_difficulty_is_refused() -> None:
    first = genesis({"ethash": {}}, difficulty=0)
    with pytest.raises(GenesisError, match="Invalid difficulty in genesis block configuration: 0"):
        PowEngine(first.spec).check_genesis(first.header(bytes(32)))

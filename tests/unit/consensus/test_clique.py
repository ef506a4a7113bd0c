"""Tests Clique headers: the test vector, every rule of consensus.md 1.4, fork choice and the scenarios of 6.1."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.consensus.clique import ADD_NONCE, CliqueEngine
from ophion.consensus.clique_snapshot import Snapshot
from ophion.consensus.engine import BlockPreferences, Tip, Vote
from ophion.errors import GenesisError, InvalidBlock, InvalidHeader, OphionError
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import EMPTY_BLOOM, EMPTY_OMMERS_HASH, EMPTY_TRIE_ROOT
from tests.unit.consensus.stories import FAR, CliqueStory, MemoryChain, address_of, genesis

RINKEBY_30000 = Header(
    parent_hash=bytes.fromhex("ff570bb9893cb9bac64e346419fb9ad51e203c1cf6da5cfcc0c0dff3351b454b"),
    ommers_hash=EMPTY_OMMERS_HASH,
    coinbase=bytes(20),
    state_root=bytes.fromhex("829b58faacea7b0aa625617ba90c93e08150bed160364a7a96505e8205043d34"),
    transactions_root=EMPTY_TRIE_ROOT,
    receipts_root=EMPTY_TRIE_ROOT,
    logs_bloom=EMPTY_BLOOM,
    difficulty=2,
    number=30000,
    gas_limit=4712388,
    gas_used=0,
    timestamp=1492460444,
    extra_data=bytes.fromhex(
        "d783010600846765746887676f312e372e33856c696e75780000000000000000"
        "42eb768f2244c8811c63729a21a3569731535f06"
        "7ffc57839b00206d1ad20c69a1981b489f772031"
        "b279182d99e65703f0076e4812653aab85fca0f0"
        "c5bc40d0535af16266714ccb26fc49448c10bdf2969411514707d7442956b3397b09a980f4bea9347f70eea52183326247a0239b6d01"
        "fa0b07afc44e8a05463301"
    ),
    mix_hash=bytes(32),
    nonce=bytes(8),
)


def test_golden_7_1_rinkeby_block_30000() -> None:
    engine = CliqueStory("A").engine
    hashed = engine.hashed(RINKEBY_30000)
    assert hashed.hash.hex() == "8b27a29300811af926039b90288d3d384dcb55931049c17c4f762e45c116776e"
    seal_hash = "89cb211c2d7a21ef8d7af39625fb047547ab7ecfee5467f3548946eca3c0ac3b"
    assert engine.signing_hash(RINKEBY_30000).hex() == seal_hash
    assert engine.author(hashed).hex() == "42eb768f2244c8811c63729a21a3569731535f06"
    assert engine.beneficiary(hashed) == engine.author(hashed)
    signers = engine.members(hashed, MemoryChain(engine, genesis({"clique": {}})))
    assert [signer.hex()[:6] for signer in signers] == ["42eb76", "7ffc57", "b27918"]
    assert signers[30000 % 3] == engine.author(hashed)


def test_golden_7_1_a_change_of_any_byte_is_refused() -> None:
    listed = RINKEBY_30000.extra_data[32:-65]
    signers = tuple(listed[at : at + 20] for at in range(0, 60, 20))
    engine = CliqueEngine(genesis({"homesteadBlock": 1, "eip150Block": 2, "clique": {}}).spec)
    chain = MemoryChain(engine, genesis({"clique": {}}, extraData="0x" + "00" * 97))
    before = replace(RINKEBY_30000, number=29999, timestamp=RINKEBY_30000.timestamp - 15)
    parent = HashedHeader(before, RINKEBY_30000.parent_hash)
    engine._snapshots.keep(parent.hash, Snapshot(29999, signers))

    def verify(encoded: bytes) -> None:
        engine.verify(engine.hashed(Header.decode(encoded)), parent, chain, RINKEBY_30000.timestamp)

    encoded = RINKEBY_30000.encode()
    verify(encoded)
    for position in range(len(encoded)):
        for bit in (0x01, 0x80):
            changed = bytearray(encoded)
            changed[position] ^= bit
            with pytest.raises(OphionError):
                verify(bytes(changed))


def test_c_01_one_signer_is_always_in_turn() -> None:
    story = CliqueStory("A")
    story.play("A A A A")
    assert [story.chain.canonical(number).header.difficulty for number in range(1, 5)] == [2, 2, 2, 2]  # type: ignore[union-attr]


def test_c_02_three_signers_take_turns_by_address() -> None:
    story = CliqueStory("ABC")
    order = sorted("ABC", key=address_of)
    story.play(" ".join(order[number % 3] for number in range(1, 10)))
    assert all(header.header.difficulty == 2 for header in story.chain.headers.values() if header.number)


def test_c_03_blocks_out_of_turn_have_difficulty_one() -> None:
    story = CliqueStory("ABC")
    order = sorted("ABC", key=address_of)
    story.play(f"{order[2]} {order[0]} {order[2]} {order[1]}")
    assert [story.chain.canonical(n).header.difficulty for n in (1, 2, 3, 4)] == [1, 1, 1, 2]  # type: ignore[union-attr]


def test_c_04_one_survivor_of_three_makes_one_block_and_halts() -> None:
    story = CliqueStory("ABC")
    story.play("A B C")
    story.play("A")
    with pytest.raises(InvalidHeader, match="recently signed"):
        story.play("A")


def halted(story: CliqueStory, live: str) -> bool:
    """Return whether none of these signers may seal the next block."""
    snapshot = story.engine.snapshot(story.chain.head, story.chain)
    return not any(snapshot.may_sign(address_of(letter), story.chain.head.number + 1) for letter in live)


def test_c_05_two_survivors_of_four_halt() -> None:
    story = CliqueStory("ABCD")
    story.play("C D A B")
    assert halted(story, "AB")
    assert not halted(story, "ABC")


def test_c_06_one_of_two_never_signs_twice_in_a_row() -> None:
    story = CliqueStory("AB")
    story.play("A B A")
    assert halted(story, "A")
    story.play("B A")
    assert halted(story, "A")


def test_c_07_both_halves_of_four_make_a_couple_of_blocks_and_one_branch_wins_after_healing() -> None:
    story = CliqueStory("ABCD")
    story.play("A B C D")
    split = story.chain.head
    tips = []
    for half in ("AB", "CD"):
        story.chain.head = split
        made = 0
        while not halted(story, half):
            snapshot = story.engine.snapshot(story.chain.head, story.chain)
            author = next(x for x in half if snapshot.may_sign(address_of(x), story.chain.head.number + 1))
            story.play(author)
            made += 1
        assert made <= 2
        tips.append(tip(story, story.chain.head))
    # every node prefers the same branch, whichever branch it saw first
    assert story.engine.prefers(tips[0], tips[1], story.chain) != story.engine.prefers(tips[1], tips[0], story.chain)


def test_c_08_three_of_five_continue_and_two_halt() -> None:
    story = CliqueStory("ABCDE")
    story.play("A B C D E")
    split = story.chain.head
    story.play("A B C A B C A B C")
    assert not halted(story, "ABC")
    story.chain.head = split
    # both signers of the smaller partition have signed recently, so this partition cannot continue
    assert halted(story, "DE")


def test_c_10_of_any_two_branches_every_node_prefers_the_same() -> None:
    story = CliqueStory("ABCDEFGH")
    branches = [
        story.chain.extend(story.sealed(letter, story.chain.genesis, timestamp=time))
        for letter in "ABCDEFGH"
        for time in (1, 2)
    ]
    tips = [tip(story, branch) for branch in branches]
    for one, other in combinations(tips, 2):
        assert story.engine.prefers(one, other, story.chain) != story.engine.prefers(other, one, story.chain)
    best = [
        one for one in tips if not any(story.engine.prefers(other, one, story.chain) for other in tips if other != one)
    ]
    assert len(best) == 1


def test_c_11_both_blocks_of_a_double_signer_are_valid_and_bar_it_on_either_branch() -> None:
    story = CliqueStory("ABC")
    first = story.sealed("A", story.chain.genesis)
    second = story.sealed("A", story.chain.genesis, timestamp=2)
    assert first.hash != second.hash
    for block in (first, second):
        story.chain.extend(block)
        with pytest.raises(InvalidHeader, match="recently signed"):
            story.play("A")


def change(**fields: Any) -> Callable[[Header], Header]:
    return lambda header: replace(header, **fields)


BROKEN = [
    ("timestamp before the period is over", change(timestamp=3), "timestamp"),
    ("mix hash not zero", change(mix_hash=b"\x01" * 32), "mix hash"),
    ("ommers", change(ommers_hash=b"\x01" * 32), "ommers hash"),
    ("nonce 1", change(nonce=bytes(7) + b"\x01"), "nonce"),
    ("difficulty of the other kind", lambda h: replace(h, difficulty=3 - h.difficulty), "difficulty"),
    ("difficulty out of range", change(difficulty=7), "difficulty"),
    ("number skips one", change(number=9), "number"),
    ("gas used above the limit", change(gas_used=0x2000000), "gas used"),
    ("gas limit too far", change(gas_limit=0x1000000 * 2), "gas limit"),
    ("base fee before London", change(base_fee_per_gas=7), "base fee per gas"),
    (
        "withdrawals in a Clique header",
        change(base_fee_per_gas=7, withdrawals_root=EMPTY_TRIE_ROOT),
        "base fee per gas",
    ),
    ("signer list outside an epoch", lambda h: _with_list(h, [address_of("A")]), "extra data length"),
]


def _with_list(header: Header, signers: list[bytes]) -> Header:
    return replace(header, extra_data=header.extra_data[:32] + b"".join(signers) + bytes(65))


@pytest.mark.parametrize(("spoil", "rule"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_c_12_a_header_that_breaks_a_rule_is_refused_though_it_is_signed(
    spoil: Callable[[Header], Header], rule: str
) -> None:
    story = CliqueStory("AB")
    story.play("A B A")
    draft = story.engine.prepare(story.chain.head, BlockPreferences(timestamp=0, author=address_of("B")), story.chain)
    with pytest.raises(InvalidHeader) as caught:
        story.chain.extend(story.signed(spoil(draft), "B"))
    assert caught.value.rule == rule


def test_c_12_what_is_refused_changes_nothing() -> None:
    """The engine refuses blocks of a recent signer, of an unknown signer and with a wrong difficulty. Then it accepts a
    valid block.
    """
    story = CliqueStory("ABC")
    story.play("A B")
    head = story.chain.head
    before = story.engine.snapshot(head, story.chain)
    for token, changes, rule in (
        ("B", {}, "recently signed"),
        ("Z", {}, "unauthorized signer"),
        ("C-A", {"difficulty": 7}, "difficulty"),
    ):
        bad = story.sealed(token, **changes)
        with pytest.raises(InvalidHeader) as caught:
            story.chain.extend(bad)
        assert caught.value.rule == rule
        assert story.chain.head == head
        assert story.engine.snapshot(head, story.chain) == before
        assert CliqueEngine(story.spec).snapshot(head, story.chain).signers == before.signers
    story.play("C A")


def test_c_12_a_header_by_a_stranger_or_without_seal_is_refused() -> None:
    story = CliqueStory("A")
    with pytest.raises(InvalidHeader, match="unauthorized signer"):
        story.play("Z")
    draft = story.engine.prepare(story.chain.head, BlockPreferences(timestamp=0, author=address_of("A")), story.chain)
    with pytest.raises(InvalidHeader, match="seal: got missing"):
        story.chain.extend(story.engine.hashed(draft))
    garbage = replace(draft, extra_data=draft.extra_data[:32] + b"\xff" * 65)
    with pytest.raises(InvalidHeader, match="seal"):
        story.chain.extend(story.engine.hashed(garbage))


EPOCH_BROKEN = [
    (
        "another order",
        lambda h: _with_list(h, sorted(map(address_of, "AB"), reverse=True)),
        "signers of an epoch block",
    ),
    ("one too few", lambda h: _with_list(h, [address_of("A")]), "signers of an epoch block"),
    ("no list", lambda h: _with_list(h, []), "signers of an epoch block"),
    ("odd length", lambda h: replace(h, extra_data=h.extra_data[:40] + bytes(65)), "signers of an epoch block"),
    ("too short", lambda h: replace(h, extra_data=bytes(96)), "signers of an epoch block"),
    ("a vote", change(coinbase=b"\x01" * 20), "coinbase of an epoch block"),
    ("the add nonce", change(nonce=ADD_NONCE), "nonce of an epoch block"),
]


@pytest.mark.parametrize(("spoil", "rule"), [case[1:] for case in EPOCH_BROKEN], ids=[case[0] for case in EPOCH_BROKEN])
def test_c_12_a_bad_epoch_block_is_refused(spoil: Callable[[Header], Header], rule: str) -> None:
    story = CliqueStory("AB", epoch=3)
    story.play("A B")
    draft = story.engine.prepare(story.chain.head, BlockPreferences(timestamp=0, author=address_of("A")), story.chain)
    with pytest.raises(InvalidHeader) as caught:
        story.chain.extend(story.signed(spoil(draft), "A"))
    assert caught.value.rule == rule


def test_c_17_clocks_may_differ_by_ten_seconds_and_an_early_block_is_not_bad_for_good() -> None:
    story = CliqueStory("A")
    block = story.sealed("A")
    story.engine.verify(block, story.chain.genesis, story.chain, block.timestamp - 10)
    with pytest.raises(InvalidHeader, match="timestamp in the future") as caught:
        story.engine.verify(block, story.chain.genesis, story.chain, block.timestamp - 11)
    assert caught.value.transient


def test_c_21_a_block_without_transactions_is_refused_where_they_are_not_made() -> None:
    story = CliqueStory("A", config={"clique": {"blockperiodseconds": 1, "createemptyblocks": False}})
    with pytest.raises(InvalidHeader, match="block without transactions"):
        story.play("A")
    story.chain.extend(story.sealed("A", transactions_root=b"\x01" * 32))


def test_c_22_rules_follow_the_branch_across_epochs_and_signer_changes() -> None:
    story = CliqueStory("ABC", epoch=4)
    story.play("A+D B+D C A* B C A B* C")
    assert story.signers() == "ABCD"
    story.chain.head = story.chain.genesis
    story.play("A-C B-C A B* A")
    assert story.signers() == "AB"
    with pytest.raises(InvalidHeader, match="unauthorized signer"):
        story.play("C")


def test_c_23_an_unsorted_genesis_list_does_not_change_the_turns() -> None:
    letters = sorted("ABC", key=address_of)
    story = CliqueStory("".join(reversed(letters)))
    story.play(" ".join(letters[number % 3] for number in (1, 2, 3)))
    assert story.chain.head.header.difficulty == 2


def test_c_24_fees_go_to_the_signer_whatever_the_coinbase_says() -> None:
    story = CliqueStory("AB")
    story.play("A+C")
    head = story.chain.head
    assert head.header.coinbase == address_of("C")
    assert story.engine.beneficiary(head) == story.engine.author(head) == address_of("A")
    assert story.engine.rewards(head, ()) == []


def test_the_base_fee_is_verified_from_london_on() -> None:
    story = CliqueStory("A", config={"londonBlock": 0})
    story.play("A")
    assert story.chain.head.header.base_fee_per_gas == 875_000_000
    with pytest.raises(InvalidHeader, match="base fee: got 7, expected 765625000"):
        story.chain.extend(story.sealed("A", base_fee_per_gas=7))


def test_ommers_do_not_exist() -> None:
    story = CliqueStory("A")
    story.play("A")
    story.engine.verify_ommers(story.chain.head, (), story.chain)
    with pytest.raises(InvalidBlock, match="number of ommers"):
        story.engine.verify_ommers(story.chain.head, (story.chain.genesis.header,), story.chain)


# --- building ---


def test_a_draft_carries_vanity_vote_and_turn() -> None:
    story = CliqueStory("AB", epoch=2)
    voted = story.sealed("A+C")
    assert (voted.header.coinbase, voted.header.nonce) == (address_of("C"), ADD_NONCE)
    draft = story.engine.prepare(
        story.chain.genesis, BlockPreferences(timestamp=77, author=address_of("A"), extra_data=b"hello"), story.chain
    )
    assert draft.timestamp == 77
    assert draft.extra_data == b"hello".rjust(32, b"\x00") + bytes(65)
    story.play("A")
    epoch_block = story.sealed("B")
    assert epoch_block.header.extra_data[32:-65] == b"".join(sorted(map(address_of, "AB")))


def test_a_vote_that_changes_nothing_is_not_emitted() -> None:
    story = CliqueStory("AB")
    preferences = BlockPreferences(timestamp=0, author=address_of("A"), vote=Vote(address_of("B"), True))
    draft = story.engine.prepare(story.chain.genesis, preferences, story.chain)
    assert (draft.coinbase, draft.nonce) == (bytes(20), bytes(8))


# --- fork choice (consensus.md 1.8) ---


def tip(story: CliqueStory, header: HashedHeader) -> Tip:
    total = story.chain.total_difficulty(header.hash)
    assert total is not None
    return Tip(header, total)


def test_the_heavier_branch_wins() -> None:
    story = CliqueStory("ABC")
    order = sorted("ABC", key=address_of)
    heavy = story.chain.extend(story.sealed(order[1], story.chain.genesis))
    light = story.chain.extend(story.sealed(order[2], story.chain.genesis))
    assert story.engine.prefers(tip(story, heavy), tip(story, light), story.chain)
    assert not story.engine.prefers(tip(story, light), tip(story, heavy), story.chain)


def test_on_equal_weight_the_shorter_branch_wins() -> None:
    story = CliqueStory("ABCDE")
    order = sorted("ABCDE", key=address_of)
    short = story.chain.extend(story.sealed(order[1], story.chain.genesis))
    story.chain.extend(story.sealed(order[2], story.chain.genesis))
    long = story.chain.extend(story.sealed(order[0]))
    assert tip(story, short).total_difficulty == tip(story, long).total_difficulty
    assert story.engine.prefers(tip(story, short), tip(story, long), story.chain)
    assert not story.engine.prefers(tip(story, long), tip(story, short), story.chain)


def test_c_09_of_two_blocks_out_of_turn_the_one_whose_turn_was_last_wins() -> None:
    story = CliqueStory("ABCDE")
    order = sorted("ABCDE", key=address_of)
    # at block 1, signer order[1] of the five is in turn. The last turn of order[0] was one block ago, and the last turn
    # of order[2] four blocks ago.
    last = story.chain.extend(story.sealed(order[0], story.chain.genesis))
    other = story.chain.extend(story.sealed(order[2], story.chain.genesis))
    assert story.engine.prefers(tip(story, last), tip(story, other), story.chain)
    assert not story.engine.prefers(tip(story, other), tip(story, last), story.chain)


def test_last_of_all_the_lower_hash_wins() -> None:
    story = CliqueStory("ABC")
    blocks = [story.chain.extend(story.sealed("A", story.chain.genesis, timestamp=time)) for time in (1, 2)]
    low, high = sorted(blocks, key=lambda block: block.hash)
    assert story.engine.prefers(tip(story, low), tip(story, high), story.chain)
    assert not story.engine.prefers(tip(story, high), tip(story, low), story.chain)


# --- genesis ---


@pytest.mark.parametrize(
    "extra_data",
    ["", "0x", "0x" + "00" * 97, "0x" + "00" * (32 + 19 + 65), "0x" + "00" * 32 + "aa" * 20 * 2 + "00" * 65],
    ids=["absent", "empty", "no signer", "odd length", "one twice"],
)
def test_a_genesis_without_usable_signers_is_refused(extra_data: str) -> None:
    first = genesis({"clique": {}}, extraData=extra_data)
    with pytest.raises(GenesisError, match="Invalid extraData in genesis block configuration"):
        CliqueEngine(first.spec).check_genesis(first.header(bytes(32)))


def test_genesis_has_no_signer() -> None:
    story = CliqueStory("A")
    story.engine.check_genesis(story.chain.genesis.header)
    assert story.engine.author(story.chain.genesis) == bytes(20)


def test_verification_needs_no_clock_of_its_own() -> None:
    story = CliqueStory("A")
    story.engine.verify(story.sealed("A", timestamp=2**40), story.chain.genesis, story.chain, FAR)


def test_looking_ahead_finds_the_same_signers() -> None:
    story = CliqueStory("AB")
    signed = story.sealed("A")
    unsigned = HashedHeader(replace(signed.header, extra_data=bytes(97)), b"\x01" * 32)
    other = CliqueEngine(story.engine._spec)
    other.look_ahead([story.chain.genesis, signed, unsigned])
    assert other._authors == {signed.hash: story.engine.author(signed)}
    with pytest.raises(InvalidHeader, match="seal"):
        other.author(unsigned)


def test_a_block_that_waits_for_its_time_was_made_by_a_signer() -> None:
    story = CliqueStory("A")
    draft = story.engine.prepare(
        story.chain.head, BlockPreferences(timestamp=10_000, author=address_of("A")), story.chain
    )
    for author, is_transient in (("A", True), ("B", False)):
        block = story.signed(draft, author)
        with pytest.raises(InvalidHeader) as caught:
            story.engine.verify(block, story.chain.genesis, story.chain, 9_000)
        assert caught.value.transient is is_transient

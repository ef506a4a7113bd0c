"""Tests the import: all rules of body and results, fork choice, bad blocks, batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ophion.chain.events import ChainBlock
from ophion.chainspec.dev_network import dev_genesis
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine import HeaderReader
from ophion.errors import InvalidBlock, InvalidHeader, UnknownParent
from ophion.native.crypto import keccak256
from ophion.native.transactions import Body, Withdrawal
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from tests.unit.chain.workshop import MINER, Workshop, workshop

# this code stores the hash of the previous block: PUSH1 1; NUMBER; SUB; BLOCKHASH; PUSH1 0; SSTORE
KEEP_PARENT_HASH = bytes.fromhex("6001430340600055")


def test_a_good_block_becomes_the_head(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        block = shop.branch(1)[0]
        staged = shop.put(block)
        assert shop.chain.head == block.header
        assert staged.total_difficulty == 0x10000 + 100
        assert shop.core.is_known(block.header.hash)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"state_root": bytes(32)}, "state root"),
        ({"receipts_root": bytes(32)}, "receipts root"),
        ({"gas_used": 21_001}, "gas used"),
        ({"logs_bloom": b"\x01" * 256}, "logs bloom"),
    ],
)
def test_results_that_differ_from_the_header_are_refused_and_remembered(
    tmp_path: Path, changes: dict[str, Any], rule: str
) -> None:
    with workshop(tmp_path) as shop:
        bad = shop.block(transactions=[shop.transfer(shop.chain.head)], **changes)
        with pytest.raises(InvalidBlock) as caught:
            shop.put(bad)
        assert (caught.value.rule, caught.value.number, caught.value.hash) == (rule, 1, bad.header.hash)
        remembered = shop.core.bad_blocks.get(bad.header.hash)
        assert remembered is not None
        with pytest.raises(InvalidBlock, match=rule):
            shop.put(bad)
        assert shop.chain.head == shop.chain.genesis
        assert shop.chain.header(bad.header.hash) is None


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"transactions_root": bytes(32)}, "transactions root"),
        ({"ommers_hash": bytes(32)}, "ommers hash"),
    ],
)
def test_a_body_that_is_not_the_headers_is_refused_but_the_block_is_not_bad(
    tmp_path: Path, changes: dict[str, Any], rule: str
) -> None:
    with workshop(tmp_path) as shop:
        with pytest.raises(InvalidBlock, match=rule):
            shop.put(shop.block(**changes))
        assert shop.core.bad_blocks.recent() == []
        good = shop.branch(1)[0]
        with pytest.raises(InvalidBlock, match="transactions root"):
            shop.put(ChainBlock(good.header, Body.of([], [], None)))
        shop.put(good)


def test_a_header_that_breaks_a_rule_is_an_invalid_header(tmp_path: Path) -> None:
    with (
        workshop(tmp_path) as shop,
        pytest.raises(InvalidHeader, match="Invalid header at block number 1 .*difficulty"),
    ):
        shop.put(shop.block(difficulty=5))


MERGED = (
    b'{"config":{"chainId":7,"londonBlock":0,"terminalTotalDifficulty":0,"ethash":{}},"difficulty":"0x0",'
    b'"gasLimit":"0x1c9c380"}'
)


def test_a_block_of_the_future_is_too_early_but_not_bad(tmp_path: Path) -> None:
    with workshop(tmp_path, parse_genesis(MERGED)) as shop:
        block = shop.block(seconds=int(shop.clock.now()) + 100)
        with pytest.raises(InvalidHeader) as caught:
            shop.put(block)
        assert caught.value.transient
        shop.clock.advance(100)
        shop.put(block)


def test_a_block_without_parent_is_unknown_and_a_child_of_a_bad_block_is_bad(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        first, second = shop.branch(2)
        with pytest.raises(UnknownParent, match="Block 2 does not connect to the existing chain. Current chain head 0"):
            shop.put(second)
        bad = shop.block(state_root=bytes(32))
        child = shop.block(bad.header)
        with pytest.raises(InvalidBlock, match="state root"):
            shop.put(bad)
        with pytest.raises(InvalidBlock, match="parent is a bad block"):
            shop.put(child)
        shop.put(first)
        shop.put(second)


@pytest.mark.parametrize(
    ("transaction", "reason"),
    [
        (legacy_transaction(DEV_KEYS[1], 7), "nonce"),
        (legacy_transaction(DEV_KEYS[1], 0, chain_id=5), "chain"),
        (legacy_transaction(DEV_KEYS[1], 0, value=10**30), "fund"),
        (legacy_transaction(DEV_KEYS[1], 0, gas=20_000), "gas"),
        (legacy_transaction(DEV_KEYS[1], 0, gas=2**60), "gas"),
        (fee_transaction(DEV_KEYS[1], 0), "1559|type|supported"),
    ],
    ids=[
        "nonce too high",
        "another chain",
        "no funds",
        "too little gas",
        "more gas than the block",
        "type of a later fork",
    ],
)
def test_a_block_with_a_transaction_that_breaks_a_rule_names_it(
    tmp_path: Path, transaction: bytes, reason: str
) -> None:
    with workshop(tmp_path) as shop:
        body = Body.of([transaction], [], None)
        template = shop.block(transactions_root=body.transactions_root, gas_used=21_000)
        with pytest.raises(InvalidBlock, match=f"transaction 0: .*({reason})"):
            shop.put(ChainBlock(template.header, body))


def test_the_heavier_branch_wins_and_ties_keep_the_first_seen(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        chain = shop.chain
        old = shop.branch(2, extra=b"old")
        new = shop.branch(3, chain.genesis, extra=b"new")
        for block in (*old, *new[:2]):
            shop.put(block)
        assert chain.head == old[1].header
        assert chain.store.block(new[1].header.hash) is not None
        shop.put(new[2])
        assert chain.head == new[2].header
        assert chain.canonical(1) == new[0].header
        back = shop.branch(2, old[1].header, extra=b"back")
        for block in back:
            shop.put(block)
        assert chain.head == back[1].header
        assert [chain.canonical(n) for n in (1, 2, 3, 4)] == [b.header for b in (*old, *back)]
        assert chain.store.state(chain.head.header.state_root).balance(b"\x0d" * 20) == 4


def test_many_blocks_share_one_commit_and_see_each_others_state(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        blocks = shop.branch(20)
        for block in blocks:
            shop.core.stage(block.header, block.body)
        assert shop.chain.store.head() == (shop.chain.genesis.hash, 0)
        assert shop.core.header(blocks[5].header.hash) == blocks[5].header
        assert shop.core.total_difficulty(blocks[5].header.hash) == 0x10000 + 600
        assert shop.core.ommers(blocks[5].header.hash) == ()
        shop.settle()
        assert shop.chain.head == blocks[-1].header
        assert all(shop.chain.is_canonical(block.header) for block in blocks)
    with workshop(tmp_path) as shop:
        assert shop.chain.head == blocks[-1].header


def test_a_batch_may_hold_a_reorganisation(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        old = shop.branch(2, extra=b"old")
        new = shop.branch(3, shop.chain.genesis, extra=b"new")
        shop.put(old[0])
        for block in (old[1], *new):
            shop.core.stage(block.header, block.body)
        shop.settle()
        assert shop.chain.head == new[2].header
        assert shop.chain.store.block(old[1].header.hash) is not None


def test_what_is_discarded_leaves_no_trace(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        first, second = shop.branch(2)
        shop.core.stage(first.header, first.body)
        shop.core.discard()
        assert shop.core.commit() is None
        with pytest.raises(UnknownParent):
            shop.core.stage(second.header, second.body)
        shop.put(first)
        shop.put(second)


def test_a_check_keeps_nothing_and_its_execution_can_be_committed(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        block = shop.branch(1)[0]
        checked = shop.core.check(block.header, block.body)
        assert not shop.core.is_known(block.header.hash)
        shop.core.stage(block.header, block.body, checked.execution)
        shop.settle()
        assert shop.chain.head == block.header


def test_blockhash_knows_ancestors_on_the_canonical_chain_in_a_batch_and_on_a_side_branch(tmp_path: Path) -> None:
    def deploy(nonce: int) -> bytes:
        return legacy_transaction(DEV_KEYS[1], nonce, to=None, gas=100_000, data=KEEP_PARENT_HASH)

    def kept(shop: Workshop, header: HashedHeader, nonce: int) -> bytes:
        contract = keccak256(rlp.encode([DEV_KEYS[1].address, nonce]))[12:]
        return shop.chain.store.state(header.header.state_root).storage(contract, bytes(32))

    with workshop(tmp_path / "source") as source:
        main = source.branch(3)
        for block in main:
            source.put(block)
        # this block extends the canonical chain, where BLOCKHASH reads the database
        asking = source.block(transactions=[deploy(3)])
        source.put(asking)
        assert kept(source, asking.header, 3) == main[2].header.hash
    with workshop(tmp_path / "batch") as batch:
        for block in (*main, asking):
            batch.core.stage(block.header, block.body)
        batch.settle()
        assert batch.chain.head == asking.header
    with workshop(tmp_path / "side") as side:
        for block in side.branch(3, extra=b"other"):
            side.put(block)
        for block in (*main, asking):
            side.put(block)
        assert side.chain.head == asking.header


def test_withdrawals_belong_to_shanghai(tmp_path: Path) -> None:
    with workshop(tmp_path / "before") as shop:
        block = shop.block()
        with pytest.raises(InvalidBlock, match="withdrawals root"):
            shop.put(ChainBlock(block.header, Body.of([], [], [])))
    with workshop(tmp_path / "after", dev_genesis("shanghai")) as shop:
        block = shop.block()
        with pytest.raises(InvalidBlock, match="withdrawals root"):
            shop.put(ChainBlock(block.header, Body.of([], [], None)))
        with pytest.raises(InvalidBlock, match="withdrawals root"):
            shop.put(ChainBlock(block.header, Body.of([], [], [Withdrawal(0, 0, MINER, 1)])))
        shop.put(block)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [({"requests_hash": bytes(32)}, "requests hash"), ({"blob_gas_used": 131072}, "blob gas used")],
)
def test_header_fields_of_later_forks_are_checked_too(tmp_path: Path, changes: dict[str, Any], rule: str) -> None:
    with workshop(tmp_path, dev_genesis("osaka")) as shop:
        shop.put(shop.block())
        with pytest.raises(InvalidBlock) as caught:
            shop.put(shop.block(**changes))
        assert caught.value.rule == rule


def test_ommers_earn_a_reward_that_the_state_root_shows(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        shop.put(shop.block())
        side = shop.block(shop.chain.genesis, extra=b"side").header.header
        body = Body.of([], [side.encode()], None)
        block = shop.block(ommers_hash=body.ommers_hash)
        with pytest.raises(InvalidBlock, match="state root"):
            # the ommer earns a reward that the template did not include, so the state root differs
            shop.put(ChainBlock(block.header, body))


def test_a_proposal_is_checked_by_rules_of_its_own_and_a_partial_hash_is_never_called_bad(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        good = shop.branch(1)[0]
        asked: list[HashedHeader] = []

        def refuse(header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
            asked.append(header)
            raise InvalidHeader("seals")

        partial = ChainBlock(HashedHeader(good.header.header, b"\x0f" * 32), good.body)
        with pytest.raises(InvalidHeader, match="seals"):
            shop.core.check(partial.header, partial.body, verify=refuse)
        assert asked == [partial.header]
        assert shop.core.bad_blocks.recent() == []
        shop.core.check(partial.header, partial.body, verify=lambda header, parent, chain, now: None)
        with pytest.raises(InvalidHeader, match="seals"):
            shop.core.check(good.header, good.body, verify=refuse)
        assert [bad.header for bad in shop.core.bad_blocks.recent()] == [good.header]

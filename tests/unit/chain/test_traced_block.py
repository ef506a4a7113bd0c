"""Tests that a traced block executes on the state of its own parent, on the main chain and on a side branch."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.chain.traced_block import traced_block_of
from ophion.errors import MissingStateError
from ophion.native.tables import ReplayStop, RowFilter, replay_tables
from ophion.primitives.header import HashedHeader
from tests.unit.chain.workshop import Workshop, workshop


def rows(shop: Workshop, header: HashedHeader) -> tuple[int, int]:
    """Return the number of traces, with the reward, and of changed nonces."""
    block = traced_block_of(shop.chain, header)
    assert block is not None
    wanted = [("traces", ["action_from"]), ("nonce_diffs", ["from_value"])]
    done, (traces, nonces) = replay_tables([block, block], wanted, RowFilter(), 2018, False, ReplayStop(), 1)
    assert done == 1
    return traces.rows, nonces.rows


def test_blocks_of_every_branch_execute_on_their_parents(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        main = shop.branch(4)
        side = shop.branch(2, parent=main[1].header, extra=b"side")
        for block in main + side:
            shop.put(block)
        for block in main + side:
            # the recipient and the miner are new accounts in the first block
            is_first = block.header.number == 1
            assert rows(shop, block.header) == (2, 3 if is_first else 1)


def test_genesis_and_unknown_blocks_are_none(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        assert traced_block_of(shop.chain, shop.chain.genesis) is None
        block = shop.block()
        assert traced_block_of(shop.chain, block.header) is None
        assert traced_block_of(shop.chain, block.header, block.body) is not None


def test_a_pruned_state_is_an_error(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        blocks = shop.branch(4)
        for block in blocks:
            shop.put(block)
        shop.chain.state_history = 1
        assert traced_block_of(shop.chain, blocks[3].header) is not None
        with pytest.raises(MissingStateError, match="The state of block 1 is not kept"):
            traced_block_of(shop.chain, blocks[1].header)

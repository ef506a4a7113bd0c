"""Tests that a traced block executes on the state of its own parent, on the main chain and on a side branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from ophion.chain.traced_block import traced_block_of
from ophion.chainspec.dev_network import dev_genesis
from ophion.errors import MissingStateError
from ophion.native.tables import ReplayStop, RowFilter, replay_tables, table_columns
from ophion.native.tracing import TracedBlock
from ophion.primitives.header import HashedHeader
from ophion.sdk.embedded_node import contract_address
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.chain.workshop import MINER, Workshop, workshop

EXECUTED = ("traces", "native_transfers", "contracts", "address_appearances", "balance_diffs", "nonce_diffs",
            "code_diffs", "storage_diffs")  # fmt: skip
GAS = 400_000


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


def contents(blocks: Sequence[TracedBlock], datasets: tuple[str, ...], is_fast: bool) -> list[list[object]]:
    """Return the bytes of all columns of these datasets."""
    columns = dict(table_columns())
    wanted = [(name, [column for column, _ in columns[name]]) for name in datasets]
    done, tables = replay_tables(blocks, wanted, RowFilter(), 2018, False, ReplayStop(), 2**30, is_fast=is_fast)
    assert done == len(blocks)
    return [
        [(nulls, *(None if part is None else bytes(part) for part in parts)) for nulls, *parts in table.columns()]
        for table in tables
    ]


def program(random: Random, contracts: int) -> bytes:
    """Return random code whose flat trace depends on frames, values, gas and instructions."""

    def call() -> str:
        opcode = random.choice(["f1", "f1", "f2", "f4", "fa"])
        to = random.choice(
            [
                contract_address(DEV_KEYS[1].address, random.randrange(contracts)),
                bytes([random.choice((1, 4, 9))]),
                b"\xee",
            ]
        )
        value = f"60{random.choice((0, 0, 0, 1, 7)):02x}" if opcode in ("f1", "f2") else ""
        gas = random.choice(["61ffff", "5a", "610100"])
        return f"6020608060206000 {value} 73{to.rjust(20, bytes(1)).hex()} {gas} {opcode} 50"

    pieces: list[Callable[[], str]] = [
        call,
        call,
        call,
        lambda: "60003550",
        lambda: f"6001600155 60{random.randrange(9):02x} 600255",
        # slots that several transactions read, increase and clear
        lambda: f"60{random.randrange(3, 6):02x} 54 50",
        lambda: f"6001 60{(slot := random.randrange(3, 6)):02x} 54 01 60{slot:02x} 55",
        lambda: f"6000 60{random.randrange(3, 6):02x} 55",
    ]
    pieces += [lambda: "600160005260206000a0", lambda: "60006000 6000 f0 50"]
    ends = ["00", "", "", "60206000f3", "6020611000f3", "60006000fd", "60206000fd", "fe", "01", f"73{'aa' * 20}ff"]
    # a balance that transfers have changed
    ends += [f"73{address.hex()}31 60005260206000f3" for address in (MINER, DEV_KEYS[0].address, DEV_KEYS[2].address)]
    text = "".join(random.choice(pieces)() for _ in range(random.randrange(5))) + random.choice(ends)
    return bytes.fromhex(text)


@pytest.mark.parametrize("fork", ["petersburg", "london", "prague"])
def test_the_fast_paths_of_a_replay_agree_with_the_slow_path(tmp_path: Path, fork: str) -> None:
    random = Random(fork)
    deployer, *callers = DEV_KEYS[1:4]
    contracts, calls = 40, 120
    deployments = []
    for nonce in range(contracts):
        code = program(random, contracts)
        init = bytes.fromhex(f"61{len(code):04x} 80 600c 6000 39 6000 f3") + code
        deployments.append(legacy_transaction(deployer, nonce, to=None, value=nonce % 3, data=init, gas=GAS))
    # the last deployments have no valid code, or stop
    failing = [b"\xfe", b"\x00", b"\x60\x00\x60\x00\xfd", b"\x60\xef\x60\x00\x53\x60\x01\x60\x00\xf3"]
    for init in failing:
        deployments.append(legacy_transaction(deployer, len(deployments), to=None, data=init, gas=GAS))
    transactions = []
    for caller in callers:
        for nonce in range(calls):
            plain = random.choice(
                [caller.address, MINER, random.randbytes(20), DEV_KEYS[0].address, bytes([0] * 19 + [4])]
            )
            to: bytes | None = (
                plain if nonce % 3 == 0 else contract_address(DEV_KEYS[1].address, random.randrange(contracts))
            )
            value, data = random.choice([0, 0, 5, 10**15]), random.choice([b"", b"", b"\x01" * 40])
            if random.random() < 0.05:
                # a creation, and code that reads the balance of its creator
                to, data = None, bytes.fromhex(f"73{caller.address.hex()}31 600155 6001 54 600355 60206000f3")
            is_plain = to is not None and to == plain and not data and to[-1] != 4
            gas = random.choice([GAS, 21_000 if is_plain else 90_000])
            transactions.append(
                legacy_transaction(caller, nonce, to=to, value=value, data=data, gas=gas, gas_price=10**10)
            )
    with workshop(tmp_path, dev_genesis(fork)) as shop:
        blocks = []
        for batch in (deployments, transactions[: len(transactions) // 2], transactions[len(transactions) // 2 :]):
            block = shop.block(transactions=batch)
            shop.put(block)
            traced = traced_block_of(shop.chain, block.header)
            assert traced is not None
            blocks.append(traced)
        for datasets in (EXECUTED, EXECUTED[:4], EXECUTED[4:]):
            # the fast path keeps accounts from block to block, the slow path reads the state of every block
            fast, slow = (contents(blocks, datasets, is_fast) for is_fast in (True, False))
            for name, mine, theirs in zip(datasets, fast, slow, strict=True):
                assert mine == theirs, name

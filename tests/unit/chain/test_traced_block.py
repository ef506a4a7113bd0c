"""Tests that a traced block executes on the state of its own parent, on the main chain and on a side branch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from ophion.chain.traced_block import traced_block_of
from ophion.chainspec.dev_network import DEV_CHAIN_ID, dev_document, dev_genesis
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.errors import MissingStateError
from ophion.native.crypto import PrivateKey
from ophion.native.tables import ReplayStop, RowFilter, replay_tables, table_columns
from ophion.native.tracing import TracedBlock
from ophion.primitives.header import HashedHeader
from ophion.sdk.embedded_node import contract_address
from ophion.testing.signing import DEV_KEYS, legacy_transaction, signed_authorization
from ophion.wallet.unsigned_transaction import ACCESS_LIST, DYNAMIC_FEE, LEGACY, SET_CODE, UnsignedTransaction
from tests.unit.chain.workshop import MINER, Workshop, workshop

EXECUTED = ("traces", "native_transfers", "contracts", "address_appearances", "balance_diffs", "nonce_diffs",
            "code_diffs", "storage_diffs")  # fmt: skip
GAS = 400_000
SEEDS = int(os.environ.get("REPLAY_SEEDS", "3"))
"""Number of random chains of `test_each_read_value_is_the_same_on_the_fast_paths`."""


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
        created: list[bytes] = []
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
            elif random.random() < 0.08:
                # a contract whose creation writes slots; later transactions of the block call it
                code = program(random, contracts)
                to, data = None, bytes.fromhex(f"6007 600355 61{len(code):04x} 80 6011 6000 39 6000 f3") + code
                created.append(contract_address(caller.address, nonce))
            elif created and random.random() < 0.15:
                to = random.choice(created)
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


OWNER, *CALLERS = DEV_KEYS[1:4]
DELEGATING = PrivateKey(b"\x07" * 32)
CONTRACTS = 24
NOBODY = (b"\xee" * 20, b"\xdd" * 20)
POOL = [
    *(contract_address(OWNER.address, nonce) for nonce in range(CONTRACTS)),
    *(key.address for key in CALLERS),
    *NOBODY,
    DELEGATING.address,
    MINER,
]
"""Accounts that contracts and transactions use."""


def reader_of_all(random: Random, is_cancun: bool) -> bytes:
    """Return random code that ends with the sum of everything that it has read: slots, balances, codes, gas, results
    and outputs of calls, new contracts. A wrong value in a journal thus changes outputs and gas.
    """

    def address() -> str:
        low = bytes([random.choice((1, 2, 3, 4, 9))]).rjust(20, bytes(1))
        return "73" + (low if random.random() < 0.1 else random.choice(POOL)).hex()

    def slot() -> str:
        return f"60{random.randrange(4):02x}"

    def call() -> str:
        opcode = random.choice(["f1", "f1", "f1", "f2", "f4", "fa"])
        value = f"60{random.choice((0, 0, 0, 1, 9)):02x}" if opcode in ("f1", "f2") else ""
        gas = random.choice(["61ffff", "61ffff", "5a", "610900"])
        return f"6020608060206000 {value} {address()} {gas} {opcode} 01 608051 01 3d 01"

    def creation() -> str:
        inits = ["60016000f3", "6001600055 6001600155", "60006000fd", f"{address()}ff", "30ff", "fe", "00"]
        init = bytes.fromhex(random.choice(inits))
        size, value, salt = len(init), random.randrange(2), random.randrange(3)
        end = "f0" if salt == 2 else "f5"
        salted = "" if salt == 2 else f"60{salt:02x}"
        return f"{0x5F + size:02x} {init.hex()} 600052 {salted} 60{size:02x} 60{32 - size:02x} 60{value:02x} {end} 01"

    pieces: list[Callable[[], str]] = [
        call,
        call,
        call,
        lambda: f"{slot()} 54 01",
        lambda: f"6001 {(name := slot())} 54 01 {name} 55",
        lambda: f"60{random.choice((0, 0, 1, 2)):02x} {slot()} 55",
        lambda: f"{address()} {random.choice(('31', '31', '3b', '3f'))} 01",
        lambda: f"{random.choice(('47', '5a', '41', '43'))} 01",
        lambda: "80600052 60206000a0",
        lambda: creation() if random.random() < 0.15 else "5a 01",
    ]
    if is_cancun:
        pieces += [lambda: f"{slot()} 5c 01", lambda: f"6001 {(name := slot())} 5c 01 {name} 5d"]
    ends = ["600052 60206000f3"] * 6 + ["00", "600052 60206000fd", "fe", f"{address()}ff", "30ff"]
    text = "6000" + "".join(random.choice(pieces)() for _ in range(random.randrange(1, 9))) + random.choice(ends)
    return bytes.fromhex(text)


def any_transaction(random: Random, key: PrivateKey, nonce: int, fork: str, prices: tuple[int, ...]) -> bytes:
    """Return a signed transaction of a random type to an account of the pool, or a creation."""
    types = [LEGACY, LEGACY, ACCESS_LIST, DYNAMIC_FEE] + [SET_CODE] * (fork == "prague" and random.random() < 0.2)
    kind, price = random.choice(types), random.choice(prices)
    to: bytes | None = random.choice([*POOL, random.randbytes(20), bytes([0] * 19 + [random.choice((2, 3, 4))])])
    data = random.choice([b"", b"", b"\x01" * 40])
    if kind != SET_CODE and random.random() < 0.06:
        code = reader_of_all(random, fork in ("cancun", "prague"))
        deploying = bytes.fromhex("600a80600a6000396000f3") + code
        # one init code deletes its own contract
        to, data = None, random.choice([code, deploying, b"\x00", b"\xfe", b"\x30\xff"])
    keys = [number.to_bytes(32, "big") for number in range(2)]
    return UnsignedTransaction(
        type=kind,
        chain_id=DEV_CHAIN_ID,
        nonce=nonce,
        gas=random.choice([GAS, GAS, 100_000]),
        to=to,
        value=random.choice([0, 0, 1, 10**15]),
        input=data,
        gas_price=price,
        max_fee_per_gas=price,
        max_priority_fee_per_gas=price,
        access_list=[(random.choice(POOL), keys)] if kind != LEGACY and random.random() < 0.7 else (),
        authorizations=[
            signed_authorization(DELEGATING, DEV_CHAIN_ID, random.choice([*POOL, bytes(20)]), random.randrange(6))
        ],
    ).signed_by(key)


def genesis_of(fork: str, is_free: bool) -> Genesis:
    document = dev_document(fork)
    if is_free:
        document["config"]["zeroBaseFee"] = True
    return parse_genesis(json.dumps(document), is_dev=True)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_read_value_is_the_same_on_the_fast_paths(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    fork, is_free = random.choice(["london", "shanghai", "cancun", "prague"]), random.random() < 0.3
    is_cancun = fork in ("cancun", "prague")
    prices = (0,) if is_free else (10**9, 10**10)
    with workshop(tmp_path, genesis_of(fork, is_free)) as shop:
        nonces = dict.fromkeys(CALLERS, 0)
        deployments = []
        for nonce in range(CONTRACTS):
            code = reader_of_all(random, is_cancun)
            init = bytes.fromhex(f"61{len(code):04x} 80 600c 6000 39 6000 f3") + code
            deployments.append(
                legacy_transaction(
                    OWNER, nonce, to=None, value=nonce % 3 * 100, data=init, gas=10**6, gas_price=prices[0]
                )
            )
        batches = [deployments]
        # the journal of the longest block is flushed in between
        for count in (60, 150, 1100 if seed % 4 == 0 else 100):
            batch = []
            for _ in range(count):
                key = random.choice(CALLERS)
                batch.append(any_transaction(random, key, nonces[key], fork, prices))
                nonces[key] += 1
            batches.append(batch)
        blocks = []
        for batch in batches:
            block = shop.block(transactions=batch)
            shop.put(block)
            traced = traced_block_of(shop.chain, block.header)
            assert traced is not None
            blocks.append(traced)
        # without state differences, the fast path keeps its journal
        for datasets in (EXECUTED[:4], EXECUTED):
            fast, slow = (contents(blocks, datasets, is_fast) for is_fast in (True, False))
            for name, mine, theirs in zip(datasets, fast, slow, strict=True):
                assert mine == theirs, name

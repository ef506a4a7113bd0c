"""The store: one transaction per commit, states by root, indexes that follow the head."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from ophion.errors import StorageError
from ophion.native.crypto import keccak256
from ophion.native.exceptions import MissingState, NativeError
from ophion.native.executor import execute
from ophion.native.store import Store, open_store
from ophion.native.tries import verify_proof
from ophion.primitives import rlp
from tests.unit.native.worlds import ADDRESSES, KEYS, RICH, Built, World, signed

COUNTER = b"\xcc" * 20
SUICIDE = b"\xdd" * 20
SLOT = (0).to_bytes(32, "big")


def slot(number: int) -> bytes:
    return number.to_bytes(32, "big")


def transfer(who: int, nonce: int, to: bytes, value: int) -> bytes:
    return signed(KEYS[who], nonce, to, value)


def test_a_committed_block_is_found_by_hash_number_and_transaction(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    raw = transfer(0, 0, b"\x77" * 20, 5)
    block = world.block(world.genesis, [raw])
    world.extend(block)
    store = world.store
    assert store.head() == (block.hash, 1)
    assert store.canonical_hash(1) == block.hash
    assert store.header(block.hash) == block.header
    assert store.total_difficulty(block.hash) == 2
    assert store.number_of(block.hash) == 1
    assert store.transaction_position(keccak256(raw)) == (block.hash, 1, 0)
    assert store.latest().balance(b"\x77" * 20) == 5
    body = store.body(block.hash)
    assert body is not None
    assert [one.raw for one in body.transactions] == [raw]
    assert body.transactions[0].sender == ADDRESSES[0]
    assert store.block(block.hash) == body.encode_block(block.header)
    assert store.check(10) == []


def test_every_state_of_the_past_stays_readable(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    blocks = [world.genesis]
    for nonce in range(5):
        blocks.append(world.block(blocks[-1], [transfer(0, nonce, b"\x77" * 20, 1), signed(KEYS[1], nonce, COUNTER)]))
        world.extend(blocks[-1])
    for height, block in enumerate(blocks):
        state = world.store.state(block.execution.state_root)
        assert state.balance(b"\x77" * 20) == height
        assert state.nonce(ADDRESSES[0]) == height
        assert int.from_bytes(state.storage(COUNTER, SLOT), "big") == height
        assert int.from_bytes(state.storage(COUNTER, slot(7)), "big") == 70


def test_blocks_stack_on_blocks_that_are_not_written_yet(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    blocks = [world.genesis]
    for nonce in range(4):
        blocks.append(world.block(blocks[-1], [signed(KEYS[1], nonce, COUNTER), transfer(0, nonce, b"\x77" * 20, 1)]))
    top = blocks[-1].execution.state
    assert int.from_bytes(top.storage(COUNTER, SLOT), "big") == 4
    assert world.store.latest().balance(b"\x77" * 20) == 0
    world.extend(*blocks[1:])
    assert world.store.latest().balance(b"\x77" * 20) == 4
    assert world.store.check(10) == []


@pytest.mark.parametrize("as_changes", [False, True])
@pytest.mark.parametrize("behind", [0, 1, 3])
def test_a_chain_that_keeps_no_nodes_in_memory_is_the_same(tmp_path: Path, behind: int, as_changes: bool) -> None:
    """Without cached nodes, the chain is the same. The test executes each block before the previous blocks are
    written.
    """
    worlds = World(tmp_path / "ample"), World(tmp_path / "none")
    worlds[1].store.set_state_cache(0)
    for world in worlds:
        if as_changes:
            world.store.write_changes()
        blocks = [world.genesis]
        for nonce in range(40):
            others = [transfer(2, 3 * nonce + part, keccak256(bytes([nonce, part]))[:20], 1) for part in range(3)]
            raws = [signed(KEYS[1], nonce, COUNTER), transfer(0, nonce, b"\x77" * 20, 1), *others]
            blocks.append(world.block(blocks[-1], raws))
            if nonce == 30:
                blocks[-1] = world.block(blocks[-2], [*raws, signed(KEYS[3], 0, SUICIDE)])
            if len(blocks) > behind + 1:
                world.extend(blocks[-1 - behind])
        world.extend(*blocks[len(blocks) - behind :])
        assert world.store.check(10) == []
        for height, block in enumerate(blocks):
            state = world.store.state(block.execution.state_root)
            assert (state.balance(b"\x77" * 20), state.nonce(ADDRESSES[2])) == (height, 3 * height)
            assert int.from_bytes(state.storage(COUNTER, SLOT), "big") == height
    heads = [world.store.head() for world in worlds]
    assert heads[0] == heads[1]
    assert worlds[0].store.nodes_written() == worlds[1].store.nodes_written(), "nothing was written twice"


def test_nodes_in_memory_are_bounded_where_blocks_grow_upon_each_other(tmp_path: Path) -> None:
    """The cache limit holds even if each block is executed before the previous block is written, as under load."""
    world = World(tmp_path / "db", gas_limit=200_000_000)
    limit = 5_000_000
    world.store.set_state_cache(limit)
    # this contract sends one wei to each of `count` consecutive addresses; the call data holds the first address and
    # the count
    pay = bytes.fromhex("6000356020358101905b60008080806001856000f15060010181811060095700")
    create = bytes.fromhex(f"60{len(pay):02x}80600b6000396000f3") + pay
    payer = keccak256(rlp.encode([ADDRESSES[0], b""]))[12:]
    blocks = [world.genesis, world.block(world.genesis, [signed(KEYS[0], 0, None, 10**6, create)])]
    cached = []
    for nonce in range(1, 31):
        call = slot((1 << 64) + 1000 * nonce) + slot(1000)
        blocks = [blocks[-1], world.block(blocks[-1], [signed(KEYS[0], nonce, payer, 0, call, 50_000_000)])]
        world.extend(blocks[0])
        cached.append(world.store.state_cached())
    assert limit / 2 < max(cached) <= limit
    assert sum(after < before for before, after in pairwise(cached)) >= 3, "a thousand accounts take half a megabyte"
    state = blocks[1].execution.state
    assert state.balance(((1 << 64) + 1000 * 31 - 1).to_bytes(20, "big")) == 1
    world.extend(blocks[1])
    assert world.store.check(10) == []


@pytest.mark.parametrize("seed", range(3))
def test_transactions_are_found_through_reorganisations_and_restarts(tmp_path: Path, seed: int) -> None:
    """Each block writes one partition of the transaction index. Other rows are buffered, or rebuilt after a restart."""
    dice, world = Random(seed), World(tmp_path / "db")
    chain: list[tuple[Built, list[bytes]]] = [(world.genesis, [])]
    roots, seen = {0: world.genesis.execution.state_root}, set[bytes]()
    for step in range(100):
        back = min(dice.choice((0, 0, 0, 0, 1, 3, 70)), len(chain) - 1)
        removed, chain = chain[len(chain) - back :], chain[: len(chain) - back]
        state, blocks = world.store.state(roots[len(chain) - 1]), list[Built]()
        for _ in range(back + dice.choice((1, 1, 1, 2, 66))):
            nonce = state.nonce(ADDRESSES[0])
            raws = [transfer(0, nonce + index, b"\x77" * 20, step) for index in range(dice.randrange(4))]
            block = world.block(chain[-1][0], raws, state, bytes([step]))
            blocks.append(block)
            state, roots[block.number] = block.execution.state, block.execution.state_root
            chain.append((replace(block, execution=None), raws))  # type: ignore[arg-type]
            seen.update(map(keccak256, raws))
        gone = [block.hash for block, _ in reversed(removed)]
        world.store.commit([block.new_block() for block in blocks], gone, [block.hash for block in blocks])
        if dice.randrange(10) == 0:
            del state, blocks, block
            chain[0] = (replace(chain[0][0], execution=None), [])  # type: ignore[arg-type]
            world.genesis = chain[0][0]
            world.store.close()
            world.store = open_store(tmp_path / "db", durable=False)
        expected = {
            keccak256(raw): (block.hash, block.number, index) for block, raws in chain for index, raw in enumerate(raws)
        }
        if step % 10 == 9:
            assert {hash: world.store.transaction_position(hash) for hash in seen} == {
                hash: expected.get(hash) for hash in seen
            }
            assert world.store.check(10) == []


@pytest.mark.parametrize("as_changes", [False, True])
def test_cached_nodes_give_the_proven_values_through_reorganisations(tmp_path: Path, as_changes: bool) -> None:
    """State reads use a cache of the trie nodes near the root, and proofs do not use it. After each change of the
    chain, the test reads every kept state.
    """
    dice, world = Random(7), World(tmp_path / "db")
    if as_changes:
        world.store.write_changes()
    world.store.set_state_cache(0)
    accounts = [keccak256(bytes([number]))[:20] for number in range(100)]
    chain, states = [world.genesis], list[bytes]()
    for step in range(30):
        back = min(dice.choice((0, 0, 0, 1, 3)), len(chain) - 1)
        removed, chain = chain[len(chain) - back :], chain[: len(chain) - back]
        blocks = []
        for _ in range(back + 1):
            state = world.store.state(chain[-1].execution.state_root) if not blocks else blocks[-1].execution.state
            nonces = [state.nonce(ADDRESSES[who]) for who in (0, 1)]
            raws = [transfer(0, nonces[0] + index, dice.choice(accounts), 1 + step) for index in range(9)]
            blocks.append(world.block(chain[-1], [*raws, signed(KEYS[1], nonces[1], COUNTER)], state, bytes([step])))
            chain.append(blocks[-1])
        gone = [block.hash for block in reversed(removed)]
        world.store.commit([block.new_block() for block in blocks], gone, [block.hash for block in blocks])
        states += [block.execution.state_root for block in blocks]
        for root in [states[-1], *dice.sample(states, min(len(states), 3))]:
            kept = world.store.state(root)
            for address in [*dice.sample(accounts, 20), COUNTER]:
                proof, slots = kept.proof(address, [SLOT])
                proven = verify_proof(root, address, proof)
                found = kept.account(address)
                assert (found is None) == (proven is None)
                if found is not None and proven is not None:
                    nonce, balance, storage_root, code_hash = rlp.decode_list(proven)
                    numbers = [int.from_bytes(value, "big") for value in (nonce, balance) if isinstance(value, bytes)]
                    assert found == (*numbers, code_hash, storage_root)
                assert kept.storage(address, SLOT) == slots[0][0]
    assert world.store.check(10) == []


def test_an_execution_that_is_dropped_leaves_nothing_behind(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    dropped = world.block(world.genesis, [transfer(0, 0, b"\x66" * 20, 9)])
    root = dropped.execution.state_root
    del dropped
    committed = world.block(world.genesis, [transfer(0, 0, b"\x77" * 20, 9)])
    world.extend(committed)
    assert world.store.latest().account(b"\x66" * 20) is None
    with pytest.raises(MissingState):
        world.store.state(root)
    assert world.store.check(10) == []


def test_a_reorganisation_moves_index_and_state(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    raw_a = transfer(0, 0, b"\xaa" * 20, 1)
    raw_b = transfer(0, 0, b"\xbb" * 20, 2)
    a1 = world.block(world.genesis, [raw_a, signed(KEYS[1], 0, COUNTER)])
    a2 = world.block(a1, [signed(KEYS[1], 1, COUNTER)])
    world.extend(a1, a2)
    b1 = world.block(world.genesis, [raw_b], salt=b"b")
    world.store.commit([b1.new_block()], [], [])
    assert world.store.head() == (a2.hash, 2), "a side chain does not move the head"
    b2 = world.block(b1, [], state=world.store.state(b1.execution.state_root))
    b3 = world.block(b2, [signed(KEYS[2], 0, SUICIDE)])
    world.store.commit([b2.new_block(), b3.new_block()], [a2.hash, a1.hash], [b1.hash, b2.hash, b3.hash])
    assert world.store.head() == (b3.hash, 3)
    assert world.store.transaction_position(keccak256(raw_a)) is None
    assert world.store.transaction_position(keccak256(raw_b)) == (b1.hash, 1, 0)
    latest = world.store.latest()
    assert latest.account(b"\xaa" * 20) is None
    assert latest.balance(b"\xbb" * 20) == 2
    assert int.from_bytes(latest.storage(COUNTER, SLOT), "big") == 0
    assert latest.account(SUICIDE) is None
    assert world.store.check(10) == []
    # switch back to the first branch, whose blocks are all stored
    a3 = world.block(a2, [], state=world.store.state(a2.execution.state_root))
    a4 = world.block(a3, [])
    world.store.commit(
        [a3.new_block(), a4.new_block()], [b3.hash, b2.hash, b1.hash], [a1.hash, a2.hash, a3.hash, a4.hash]
    )
    assert world.store.canonical_hash(3) == a3.hash
    assert world.store.latest().account(SUICIDE) is not None
    assert int.from_bytes(world.store.latest().storage(SUICIDE, slot(1)), "big") == 2
    assert world.store.check(10) == []


def test_a_destroyed_account_loses_its_storage_and_can_be_created_again(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    gone = world.block(world.genesis, [signed(KEYS[0], 0, SUICIDE)])
    again = world.block(gone, [transfer(0, 1, SUICIDE, 3)])
    world.extend(gone, again)
    latest = world.store.latest()
    assert latest.balance(SUICIDE) == 3
    assert latest.storage(SUICIDE, slot(1)) == bytes(32)
    assert latest.code(SUICIDE) == b""
    assert world.store.check(10) == []


def test_executing_a_built_block_gives_the_same_roots(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    block = world.block(world.genesis, [signed(KEYS[0], 0, COUNTER), transfer(1, 0, b"\x77" * 20, 1)])
    again = execute(world.genesis.execution.state, world.env(1, world.genesis.hash), block.body, [], False)
    assert again.state_root == block.execution.state_root
    assert again.receipts_root == block.execution.receipts_root
    assert again.logs_bloom == block.execution.logs_bloom


def test_proofs_show_presence_and_absence(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    state = world.store.latest()
    account, slots = state.proof(COUNTER, [slot(7), slot(8)])
    assert verify_proof(state.root, COUNTER, account) is not None
    storage_root = state.account(COUNTER)[3]  # type: ignore[index]
    assert [int.from_bytes(value, "big") for value, _ in slots] == [70, 0]
    assert verify_proof(storage_root, slot(7), slots[0][1]) == bytes([70])
    assert verify_proof(storage_root, slot(8), slots[1][1]) is None
    nobody, _ = state.proof(b"\x01" * 20, [])
    assert verify_proof(state.root, b"\x01" * 20, nobody) is None


def test_accounts_and_slots_are_walked_by_hashed_key_with_their_names(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    state = world.store.latest()
    seen: list[bytes] = []
    start: bytes | None = bytes(32)
    while start is not None:
        rows, start = state.accounts(start, 3)
        assert len(rows) <= 3
        seen += [row[1] or b"" for row in rows]
    assert sorted(seen) == sorted([*ADDRESSES, COUNTER, SUICIDE])
    rows, after = state.storage_range(COUNTER, bytes(32), 10)
    assert [(name, int.from_bytes(value, "big")) for _, name, value in rows] == [(slot(7), 70)]
    assert after is None


def test_everything_is_there_after_reopening(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    block = world.block(world.genesis, [signed(KEYS[0], 0, COUNTER)])
    world.extend(block)
    world.store.put_meta("note", b"kept")
    root = block.execution.state_root
    world.store.close()
    with pytest.raises(NativeError):
        world.store.head()
    del block, world.genesis
    store = open_store(tmp_path / "db")
    assert store.head() is not None
    assert store.meta("note") == b"kept"
    assert store.meta("other") is None
    assert int.from_bytes(store.state(root).storage(COUNTER, SLOT), "big") == 1
    assert store.check(10) == []


def test_an_unknown_block_in_a_commit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    block = world.block(world.genesis, [transfer(0, 0, b"\x77" * 20, 5)])
    with pytest.raises(NativeError, match="is not in the database"):
        world.store.commit([block.new_block()], [], [block.hash, b"\x12" * 32])
    assert world.store.head() == (world.genesis.hash, 0)
    assert world.store.header(block.hash) is None
    with pytest.raises(NativeError, match="restarted"):
        world.extend(block)


def test_a_path_without_a_database_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no database"):
        open_store(tmp_path / "nothing", create=False)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot create"):
        open_store(tmp_path / "file" / "db")


def test_balances_wider_than_a_machine_word_survive(tmp_path: Path) -> None:
    world = World(tmp_path / "db")
    assert world.store.latest().balance(ADDRESSES[3]) == RICH


_HELD_READER = """
import os, sys
from pathlib import Path
from ophion.native.executor import execute
from ophion.native.store import Store, open_store
store = open_store(Path(sys.argv[1]), create=False, read_only=True)
read_end, write_end = os.pipe()
print("reading", flush=True)
store.copy_to(write_end)
"""


def test_a_reader_that_was_killed_does_not_keep_freed_pages(tmp_path: Path) -> None:
    """A killed process leaves its entry in the reader table of LMDB. Its pages would never be reused, so the file would
    grow with each block.
    """
    database = tmp_path / "db"
    store = open_store(database)
    text = bytes(1 << 20)
    for _ in range(20):
        store.put_meta("filler", text)
    command = [sys.executable, "-c", _HELD_READER, str(database)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"reading\n"
        held = _size_after(store, database, text, 20)
        while _size_after(store, database, text, 5) == held:
            held = _size_after(store, database, text, 20)  # the copy has not started yet
        reader.kill()
    before = _size_after(store, database, text, 40)
    assert _size_after(store, database, text, 100) == before


def _size_after(store: Store, database: Path, text: bytes, writes: int) -> int:
    for _ in range(writes):
        store.put_meta("filler", text)
    return (database / "data.mdb").stat().st_size

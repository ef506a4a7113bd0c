"""Tests the committed chain: genesis, reads, and events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ophion.chain.chain import Chain
from ophion.chain.events import ChainBlock, ChainEvent, Extended, Reorged
from ophion.chainspec.dev_network import dev_genesis
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import GenesisError
from ophion.native.store import RULES_KEY, open_store
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.chain.workshop import workshop


def test_an_empty_database_begins_with_the_genesis(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        chain = shop.chain
        assert chain.head == chain.genesis == chain.canonical(0) == chain.header(chain.genesis.hash)
        assert chain.total_difficulty(chain.genesis.hash) == chain.tip.total_difficulty == 0x10000
        assert (
            chain.store.state(chain.head.header.state_root).balance(
                bytes.fromhex("fe3b557e8fb62b89f4916b721be55ceb828dbd73")
            )
            == 200 * 10**18
        )


def test_a_database_remembers_its_head_and_takes_no_other_genesis(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        for block in shop.branch(3):
            shop.put(block)
        head = shop.chain.head
    with workshop(tmp_path) as shop:
        assert shop.chain.head == head
        assert shop.chain.tip.total_difficulty == 0x10000 + 3 * 100
        stored = shop.chain.genesis.hash
    with (
        pytest.raises(GenesisError, match="does not match stored chain data") as caught,
        workshop(tmp_path, dev_genesis()),
    ):
        pass
    assert stored.hex() in str(caught.value)


def test_a_database_keeps_the_rules_its_blocks_were_made_with(tmp_path: Path) -> None:
    with workshop(tmp_path, dev_genesis("berlin")) as shop:
        for block in shop.branch(3):
            shop.put(block)
        rules = shop.chain.store.meta(RULES_KEY)
    with (
        pytest.raises(GenesisError, match="up to block 3.*chainId was 2018 and is 5"),
        workshop(tmp_path, dev_genesis("berlin", [("chainId", 5)])),
    ):
        pass
    with workshop(tmp_path, dev_genesis("berlin", [("londonBlock", 4)])) as shop:
        assert shop.chain.store.meta(RULES_KEY) != rules
        for block in shop.branch(1):
            shop.put(block)
    with (
        pytest.raises(GenesisError, match="londonBlock was 4 and is not set"),
        workshop(tmp_path, dev_genesis("berlin")),
    ):
        pass


def test_a_database_of_an_older_version_takes_the_rules_it_is_given(tmp_path: Path) -> None:
    with workshop(tmp_path, dev_genesis("berlin")) as shop:
        for block in shop.branch(3):
            shop.put(block)
        shop.chain.store.put_meta(RULES_KEY, b"")
    with workshop(tmp_path, dev_genesis("berlin", [("chainId", 5)])) as shop:
        assert shop.chain.head.number == 3
    with pytest.raises(GenesisError, match="chainId was 5 and is 2018"), workshop(tmp_path, dev_genesis("berlin")):
        pass


def test_a_genesis_the_engine_cannot_use_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    genesis = parse_genesis('{"config": {"clique": {}}, "difficulty": 1, "gasLimit": 5000}')
    store = open_store(tmp_path, durable=False)
    with pytest.raises(GenesisError, match="extraData"):
        Chain.open(store, genesis, engine_for(genesis.spec))
    assert store.head() is None
    store.close()


def test_unknown_blocks_are_none(tmp_path: Path) -> None:
    with workshop(tmp_path) as shop:
        chain = shop.chain
        assert chain.header(bytes(32)) is None
        assert chain.canonical(1) is None
        assert chain.total_difficulty(bytes(32)) is None
        assert chain.ommers(bytes(32)) == ()


def test_growth_and_reorganisation_are_published_after_the_commit(tmp_path: Path) -> None:
    received: list[ChainEvent] = []
    with workshop(tmp_path) as shop:
        chain = shop.chain

        def listen(event: ChainEvent) -> None:
            assert chain.head == event.head
            assert chain.store.head() == (event.head.hash, event.head.number)
            received.append(event)

        chain.events.listen(listen)
        old = shop.branch(2, extra=b"old")
        new = shop.branch(3, chain.genesis, extra=b"new")
        for block in (*old, *new):
            shop.put(block)
        assert chain.is_canonical(new[0].header)
        assert not chain.is_canonical(old[0].header)
    first, second, reorged = received
    assert isinstance(first, Extended)
    assert isinstance(second, Extended)
    assert [block.header for block in (*first.blocks, *second.blocks)] == [block.header for block in old]
    assert isinstance(reorged, Reorged)
    assert [block.header for block in reorged.removed] == [old[1].header, old[0].header]
    assert [block.header for block in reorged.added] == [block.header for block in new]
    assert reorged.removed[0].body.transactions[0].hash == old[1].body.transactions[0].hash


def test_addresses_and_transactions_are_known_on_whatever_branch(tmp_path: Path) -> None:
    def payment(nonce: int, to: bytes) -> bytes:
        return legacy_transaction(DEV_KEYS[1], nonce, to=to, value=1, chain_id=2018)

    with workshop(tmp_path) as shop:
        chain = shop.chain
        receivers = {name: [bytes([name, number]) * 10 for number in range(3)] for name in (1, 2)}

        def names(block: ChainBlock) -> set[bytes | None]:
            rows, _ = chain.store.state(block.header.header.state_root).accounts(bytes(32), 1_000)
            return {address for _, address, *_ in rows}

        branches: dict[int, list[ChainBlock]] = {}
        for name in (1, 2):
            branch = branches[name] = []
            for number in range(name + 1):
                parent = branch[-1].header if branch else chain.genesis
                branch.append(shop.block(parent, [payment(number, receivers[name][number])], extra=bytes([name])))
        for block in (*branches[1], *branches[2]):
            shop.put(block)
        again = shop.block(branches[1][-1].header, [payment(2, receivers[1][2])], extra=b"1")
        last = shop.block(again.header, [payment(3, b"\x03" * 20)], extra=b"1")
        assert chain.head == branches[2][-1].header
        for block in (again, last):
            shop.put(block)
        assert chain.head == last.header
        branches[1].append(again)
        for name, branch in branches.items():
            for number, block in enumerate(branch):
                found = names(block)
                assert None not in found
                assert {*receivers[name][: number + 1]} <= found
                hash = block.body.transactions[0].hash
                assert (chain.store.transaction_position(hash) is not None) == (name == 1)
        assert chain.store.check(10) == []


def test_empty_accounts_of_a_genesis_file_exist(tmp_path: Path) -> None:
    """Empty accounts of a genesis file are stored, as in other clients, because they are part of the genesis hash."""
    document = {"config": {"ethash": {}}, "difficulty": 1, "gasLimit": 5000, "alloc": {"01" * 20: {"balance": "0"}}}
    genesis = parse_genesis(json.dumps(document))
    with workshop(tmp_path, genesis) as shop:
        assert shop.chain.store.state(shop.chain.head.header.state_root).account(b"\x01" * 20) is not None

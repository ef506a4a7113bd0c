"""Verification accepts only the chain of the genesis file with its seals, and leaves no unverified data."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.chain.chain import Chain
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.engine import BlockPreferences
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CheckpointError, MissingStateError
from ophion.native.crypto import PrivateKey
from ophion.native.executor import genesis_state
from ophion.native.store import NewBlock, open_store
from ophion.native.transactions import Body
from ophion.node.checkpoint.verification import VerifiedCheckpoint, verify
from ophion.primitives.header import Header
from ophion.primitives.types import Hash32
from tests.unit.node.checkpoint.backups import BLOCKS, backup_of
from tests.unit.proofs.chains import genesis_text

NOW = 2_000_000_000


def run(backup: Path, genesis: Genesis, trusted_hash: Hash32 | None = None) -> VerifiedCheckpoint:
    return verify(backup / "database", genesis, trusted_hash, lambda: NOW, lambda step, done, total: None)


@pytest.mark.parametrize("protocol", ["qbft", "ibft2", "clique"])
def test_a_sealed_chain_passes(tmp_path: Path, protocol: str) -> None:
    backup, genesis = backup_of(tmp_path, protocol)
    verified = run(backup, genesis)
    assert verified.number == BLOCKS
    with closing(open_store(backup / "database")) as store:
        assert store.check(10) == []
        chain = Chain.open(store, genesis, engine_for(genesis.spec))
        assert (chain.head.hash, chain.oldest_state) == (verified.hash, BLOCKS)
        assert len(chain.engine.members(chain.head, chain)) == 5
        with pytest.raises(MissingStateError, match="started from a checkpoint"):
            chain.state(_header(chain, 3))
    assert run(backup, genesis) == verified  # a checkpoint of a checkpoint


def _header(chain: Chain, number: int) -> Header:
    found = chain.canonical(number)
    assert found is not None
    return found.header


def test_another_genesis_is_refused(tmp_path: Path) -> None:
    backup, _ = backup_of(tmp_path, "qbft")
    with pytest.raises(CheckpointError, match="Supplied genesis block does not match"):
        run(backup, parse_genesis(genesis_text("qbft", 5)))


def test_another_last_block_than_the_trusted_one_is_refused(tmp_path: Path) -> None:
    backup, genesis = backup_of(tmp_path, "qbft")
    with pytest.raises(CheckpointError, match="--sync-checkpoint-hash names"):
        run(backup, genesis, b"\1" * 32)
    assert run(backup, genesis, run(backup, genesis).hash).number == BLOCKS


def forge(backup: Path, genesis: Genesis, keeps_head: bool) -> None:
    """Add a block that no validator has sealed to a backup, as the head or as a side block."""
    with closing(open_store(backup / "database")) as store:
        engine = engine_for(genesis.spec)
        chain = Chain.open(store, genesis, engine)
        head = chain.head
        (author, *_) = engine.members(head, chain)
        draft = engine.prepare(head, BlockPreferences(head.timestamp + 1, author), chain)
        draft = replace(draft, state_root=head.header.state_root)
        outsiders = [PrivateKey(bytes([number]) * 32) for number in range(101, 105)]
        seals = [key.sign(engine.signing_hash(draft)) for key in outsiders]
        forged = engine.hashed(engine.attach(draft, seals))
        accounts = [(a.address, a.nonce, a.balance, a.code, a.storage) for a in genesis.accounts]
        block = NewBlock(
            hash=forged.hash,
            number=forged.number,
            header=forged.header.encode(),
            body=Body.of([], [], None),
            execution=genesis_state(store, accounts),
            total_difficulty=chain.tip.total_difficulty + 1,
        )
        store.commit([block], [], [] if keeps_head else [forged.hash], [("forged", b"value")])


def test_a_forged_block_is_refused(tmp_path: Path) -> None:
    backup, genesis = backup_of(tmp_path, "qbft")
    forge(backup, genesis, keeps_head=False)
    with pytest.raises(CheckpointError, match=f"block number {BLOCKS + 1} .* committed seal"):
        run(backup, genesis)


def test_a_side_block_and_values_of_the_other_node_are_removed(tmp_path: Path) -> None:
    backup, genesis = backup_of(tmp_path, "qbft")
    with closing(open_store(backup / "database")) as store:
        before = {name: entries for name, entries, _ in store.usage()}
    forge(backup, genesis, keeps_head=True)
    with closing(open_store(backup / "database")) as store:
        store.write_rows([("payloads", b"key", b"value")])
    run(backup, genesis)
    with closing(open_store(backup / "database")) as store:
        after = {name: entries for name, entries, _ in store.usage()}
        assert after["headers"] == before["headers"] == BLOCKS + 1
        assert (store.meta("forged"), store.row("payloads", b"key")) == (None, None)


@pytest.mark.parametrize("is_merged", [False, True])
def test_networks_without_seals_need_a_hash(tmp_path: Path, is_merged: bool) -> None:
    text = '{"config": {"chainId": 5, "ethash": {"fixeddifficulty": 1}}, "difficulty": "0x1", "gasLimit": "0x1000000"}'
    genesis = parse_genesis(genesis_text("clique", 4, terminalTotalDifficulty=5) if is_merged else text)
    with closing(open_store(tmp_path / "database")) as store:
        head = Chain.open(store, genesis, engine_for(genesis.spec)).head
    with pytest.raises(CheckpointError, match="have no validators' seals; give the hash"):
        run(tmp_path, genesis)
    assert run(tmp_path, genesis, head.hash).number == 0

"""Empty blocks made in one call equal empty blocks made one by one."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from ophion.chain.events import ChainEvent
from ophion.chainspec.dev_network import DEV_CHAIN_ID
from ophion.dev import empty_blocks
from ophion.native.executor import AccountOverride
from ophion.native.transactions import Transaction, decode_transactions
from ophion.node.dev_genesis import preset_genesis
from ophion.node.dev_options import DevPreset
from ophion.primitives.types import WEI_PER_ETHER
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.dev.test_head_control import config_of, dev_of

COUNT = 300
"""Number of blocks: enough for the base fee to reach its minimum, and for several runs after that."""
WITHDRAWAL_REQUESTS = bytes.fromhex("00000961ef480eb55e80d19ad83579a64c007002")
HISTORY_STORAGE = bytes.fromhex("0000f90827f1c53a10cb7a02335b175320002935")


@pytest.mark.parametrize("preset", [None, DevPreset.ANVIL, DevPreset.HARDHAT])
@pytest.mark.parametrize("interval", [None, 3])
def test_empty_blocks_in_a_batch_equal_single_blocks(
    tmp_path: Path, preset: DevPreset | None, interval: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(preset)
    genesis = preset_genesis(config)
    monkeypatch.setattr(empty_blocks, "_MAX_RUN_BLOCKS", 32)

    async def single(core: TestCore) -> list[bytes]:
        dev_of(core).clock.interval = 2 if interval is None else None
        for _ in range(COUNT):
            await dev_of(core).mine(1, interval)
        return [found.hash for number in range(COUNT + 1) if (found := core.chain.canonical(number))]

    async def batch(core: TestCore) -> list[bytes]:
        published: list[bytes] = []

        def note(event: ChainEvent) -> None:
            for block in getattr(event, "blocks", ()):
                assert core.chain.engine.hashed(block.header.header).hash == block.header.hash
                published.append(block.header.hash)

        core.chain.events.listen(note)
        dev_of(core).clock.interval = 2 if interval is None else None
        await dev_of(core).mine(COUNT, interval)
        stored = [found.hash for number in range(COUNT + 1) if (found := core.chain.canonical(number))]
        assert stored[1:] == published
        return stored

    with open_core(tmp_path / "single", config=config, genesis=genesis) as core:
        expected = asyncio.run(single(core))
    with open_core(tmp_path / "batch", config=config, genesis=genesis) as core:
        assert asyncio.run(batch(core)) == expected
        assert core.queries.head_number == COUNT
        difficulty = core.chain.head.header.difficulty
        assert core.chain.tip.total_difficulty == core.chain.genesis.header.difficulty + COUNT * difficulty
        assert core.chain.total_difficulty(core.chain.head.hash) == core.chain.tip.total_difficulty
        assert core.chain.store.head() == (expected[-1], COUNT)


def test_blocks_follow_a_run(tmp_path: Path) -> None:
    config = config_of(DevPreset.ANVIL)

    async def story(core: TestCore) -> None:
        dev = dev_of(core)
        await dev.mine(5000)
        middle = core.chain.head
        number = await dev.snapshot()
        await dev.mine(1000, 7)
        assert core.chain.head.timestamp == middle.timestamp + 7000
        assert await dev.revert(number)
        await dev.mine(1)
        await dev.mine(1000)
        head = core.chain.head
        assert head.number == middle.number + 1001
        parent = core.chain.canonical(middle.number + 1)
        assert parent is not None
        assert parent.parent_hash == middle.hash

    with open_core(tmp_path, config=config, genesis=preset_genesis(config)) as core:
        asyncio.run(story(core))


def withdrawal_request(nonce: int) -> Transaction:
    """Return a transaction that asks for a withdrawal (EIP-7002): a public key of 48 bytes and an amount of 8."""
    data = nonce.to_bytes(48, "big") + bytes(7) + b"\x01"
    raw = legacy_transaction(
        DEV_KEYS[0], nonce, to=WITHDRAWAL_REQUESTS, value=16, gas=300_000, data=data, chain_id=DEV_CHAIN_ID
    )
    (transaction,) = decode_transactions([raw])
    assert isinstance(transaction, Transaction)
    return transaction


async def hashes_after_requests(core: TestCore, is_batch: bool) -> list[bytes]:
    """Add a block with 60 requests and 40 empty blocks. A block can hold 16 requests, so the next three have some."""
    dev = dev_of(core)
    await dev.mine(10)
    await dev.add_block(*(withdrawal_request(nonce) for nonce in range(60)))
    for count in [40] if is_batch else [1] * 40:
        await dev.mine(count)
    return [found.hash for number in range(52) if (found := core.chain.canonical(number))]


def test_requests_left_over_from_earlier_blocks_go_into_empty_blocks(tmp_path: Path) -> None:
    config = config_of(None)
    with open_core(tmp_path / "single", config=config, genesis=preset_genesis(config)) as core:
        dev_of(core).clock.interval = 2
        expected = asyncio.run(hashes_after_requests(core, is_batch=False))
    with open_core(tmp_path / "batch", config=config, genesis=preset_genesis(config)) as core:
        dev_of(core).clock.interval = 2
        assert asyncio.run(hashes_after_requests(core, is_batch=True)) == expected
        hashes = [found.header.requests_hash for n in range(11, 17) if (found := core.chain.canonical(n))]
        assert len(set(hashes[:4])) == 4
        assert len(set(hashes[4:])) == 1


def test_a_system_contract_with_other_requests_in_each_block(tmp_path: Path) -> None:
    """A run cannot hold such blocks, so each block is executed alone."""
    config = config_of(None)
    number_as_request = bytes.fromhex("4360005260206000f3")  # returns the block number
    always = AccountOverride(address=WITHDRAWAL_REQUESTS, code=number_as_request)
    late = AccountOverride(address=WITHDRAWAL_REQUESTS, code=bytes.fromhex("604b4311600857005b4360005260206000f3"))

    async def story(core: TestCore, changes: AccountOverride, batch: int) -> list[bytes]:
        dev = dev_of(core)
        dev.clock.interval = 2
        await dev.edit(changes)
        for _ in range(200 // batch):
            await dev.mine(batch)
        return [found.hash for number in range(201) if (found := core.chain.canonical(number))]

    for name, changes in (("always", always), ("late", late)):
        chains = []
        for batch in (1, 200):
            path = tmp_path / f"{name}{batch}"
            with open_core(path, config=config, genesis=preset_genesis(config)) as core:
                chains.append(asyncio.run(story(core, changes, batch)))
        assert chains[0] == chains[1]
        assert len(chains[0]) == 201


def test_every_state_of_a_run_can_be_read_after_a_restart(tmp_path: Path) -> None:
    config = config_of(None)

    async def story(core: TestCore) -> None:
        await dev_of(core).mine(200)

    with open_core(tmp_path, config=config, genesis=preset_genesis(config)) as core:
        asyncio.run(story(core))
    del core
    gc.collect()  # free the states of the first run, because they would keep the database open
    with open_core(tmp_path, config=config, genesis=preset_genesis(config)) as core:
        before = core.chain.state(core.chain.genesis.header)
        for number in range(1, 201):
            found = core.chain.canonical(number)
            assert found is not None
            state = core.chain.state(found.header)
            ring = (number - 1) % 8191
            assert state.storage(HISTORY_STORAGE, ring.to_bytes(32, "big")) == found.parent_hash
            earned = state.balance(found.header.coinbase) - before.balance(found.header.coinbase)
            assert earned == number * 2 * WEI_PER_ETHER


def test_a_cancelled_request_leaves_one_chain(tmp_path: Path) -> None:
    config = config_of(DevPreset.ANVIL)

    async def story(core: TestCore) -> None:
        dev = dev_of(core)
        for pause_s in (0, 0.001, 0.01, 0.05, 0.1):
            mining = asyncio.create_task(dev.mine(20_000))
            await asyncio.sleep(pause_s)
            mining.cancel()
            await asyncio.gather(mining, return_exceptions=True)
            await dev.mine(1)
            await dev.mine(500)
        head = core.chain.head
        assert core.chain.store.head() == (head.hash, head.number)
        parent = core.chain.genesis.hash
        for number in range(1, head.number + 1):
            found = core.chain.canonical(number)
            assert found is not None
            assert found.parent_hash == parent
            parent = found.hash
        assert parent == head.hash

    with open_core(tmp_path, config=config, genesis=preset_genesis(config)) as core:
        asyncio.run(story(core))

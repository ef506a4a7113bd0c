"""Empty blocks made in one call equal empty blocks made one by one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ophion.chain.events import ChainEvent
from ophion.dev import empty_blocks
from ophion.node.dev_genesis import preset_genesis
from ophion.node.dev_options import DevPreset
from ophion.testing.node_core import TestCore, open_core
from tests.unit.dev.test_head import config_of, dev_of

COUNT = 300
"""Number of blocks: enough for the base fee to reach its minimum, and for several runs after that."""


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

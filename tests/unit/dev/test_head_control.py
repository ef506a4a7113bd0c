"""Edits of the head and the blocks that follow them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from ophion.dev.cheat_codes import DevNode
from ophion.native.executor import AccountOverride
from ophion.node.config import NodeConfig
from ophion.node.dev_genesis import preset_genesis
from ophion.node.dev_options import DevConfig, DevPreset
from ophion.node.interface_options import CHEAT_CODES, HttpConfig
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.signing import DEV_KEYS


def config_of(preset: DevPreset | None) -> NodeConfig:
    http = HttpConfig(enabled=True, groups=tuple(CHEAT_CODES))
    return replace(DEV_CONFIG, dev=DevConfig(preset=preset, timestamp=1000), http=http)


def dev_of(core: TestCore) -> DevNode:
    assert core.core.dev is not None
    return core.core.dev


def test_empty_blocks_after_an_edit_have_the_edited_state(tmp_path: Path) -> None:
    config = config_of(DevPreset.ANVIL)

    async def story(core: TestCore) -> None:
        dev, address = dev_of(core), DEV_KEYS[0].address
        await dev.edit(AccountOverride(address=address, balance=7))
        await dev.mine(2000)
        head = core.chain.head.header
        assert head.number == 2000
        assert core.chain.state(head).balance(address) == 7
        assert (head.number, head.state_root) not in core.chain.edited_roots

    with open_core(tmp_path, config=config, genesis=preset_genesis(config)) as core:
        asyncio.run(story(core))

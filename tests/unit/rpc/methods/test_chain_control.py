from __future__ import annotations

from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface


def test_a_block_is_executed_again(dev: Interface) -> None:
    dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[0], 0, to=DEV_KEYS[1].address, value=1)))
    assert dev.ask("debug_replayBlock", "0x1") == "Success"
    assert dev.ask("eth_blockNumber") == "0x1"
    for unknown in ("0x0", "0x2", "pending"):
        assert dev.error("debug_replayBlock", unknown) == (-39001, "Unknown block")


def test_a_chain_with_other_nodes_keeps_its_blocks(sample: Interface) -> None:
    assert sample.error("debug_setHead", "0x1") == (-32604, "Method not enabled")
    assert sample.error("debug_setHead", "0xffffff") == (-39001, "Unknown block")


def test_the_state_cannot_be_fetched_again(dev: Interface) -> None:
    assert dev.error("debug_resyncWorldState") == (-32604, "Method not enabled")


def test_there_are_no_plugins(dev: Interface) -> None:
    assert dev.ask("plugins_reloadPluginConfig") == "Success"
    assert dev.error("plugins_reloadPluginConfig", "rocksdb") == (-60000, "Plugin not found")

from __future__ import annotations

from tests.unit.rpc.interface import Interface


def test_the_cache_is_always_complete(dev: Interface) -> None:
    dev.run(dev.node.mine())
    status = {"startBlock": "0x0", "endBlock": "0x1", "currentBlock": "0x1", "caching": False, "requestAccepted": True}
    assert dev.ask("admin_generateLogBloomCache") == status
    assert dev.ask("admin_generateLogBloomCache", "earliest", "latest") == status
    assert dev.ask("admin_generateLogBloomCache", "0x1", "0xff") == {**status, "startBlock": "0x1"}
    assert dev.ask("admin_logsRepairCache", "0x1") == {"Status": "Started"}
    assert dev.ask("admin_logsRemoveCache", "0x0", "latest") == {"Status": "Cache Removed"}


def test_parameters_are_checked(dev: Interface) -> None:
    dev.run(dev.node.mine())
    assert dev.error("admin_logsRepairCache", "0x9") == (-32000, "Block not found")
    assert dev.error("admin_logsRemoveCache", "0x9") == (-32000, "Block not found")
    assert dev.error("admin_logsRemoveCache", "0x1", "0x0")[0] == -32602

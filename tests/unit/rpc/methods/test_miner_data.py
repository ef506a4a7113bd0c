from __future__ import annotations

from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface


def test_rewards_and_fees_of_a_block(dev: Interface) -> None:
    raw = legacy_transaction(DEV_KEYS[0], 0, to=DEV_KEYS[1].address, value=1)
    dev.run(dev.node.mine(raw))
    block = dev.ask("eth_getBlockByNumber", "latest")
    (receipt,) = dev.ask("eth_getBlockReceipts", "latest")
    fee = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    found = dev.ask("eth_getMinerDataByBlockNumber", "latest")
    assert found == dev.ask("eth_getMinerDataByBlockHash", block["hash"])
    assert int(found["transactionFee"], 16) == fee > 0
    static, uncles = int(found["staticBlockReward"], 16), int(found["uncleInclusionReward"], 16)
    assert int(found["netBlockReward"], 16) == static + fee + uncles
    assert (uncles, found["uncleRewards"]) == (0, [])
    assert found["coinbase"] == block["miner"]
    assert (found["extraData"], found["difficulty"]) == (block["extraData"], block["difficulty"])
    assert found["totalDifficulty"] == block["totalDifficulty"]
    assert dev.ask("eth_getMinerDataByBlockNumber", "0x0")["netBlockReward"] == "0x0"


def test_an_unknown_block_is_null(dev: Interface) -> None:
    assert dev.ask("eth_getMinerDataByBlockNumber", "0xffff") is None
    assert dev.ask("eth_getMinerDataByBlockHash", "0x" + "ab" * 32) is None

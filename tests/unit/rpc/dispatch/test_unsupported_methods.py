from __future__ import annotations

import pytest

from ophion.rpc.dispatch.unsupported_methods import reason_declined
from ophion.rpc.methods import all_methods

BESU = """
admin_addPeer admin_changeLogLevel admin_generateLogBloomCache admin_logsRemoveCache admin_logsRepairCache
admin_nodeInfo admin_peers admin_removePeer debug_accountAt debug_accountRange debug_batchSendRawTransaction
debug_getBadBlocks debug_getRawBlock debug_getRawBlockAccessList debug_getRawHeader debug_getRawReceipts
debug_getRawTransaction debug_metrics debug_replayBlock debug_resyncWorldState debug_setHead
debug_standardTraceBadBlockToFile debug_standardTraceBlockToFile debug_storageRangeAt debug_traceBlock
debug_traceBlockByHash debug_traceBlockByNumber debug_traceCall debug_traceTransaction engine_newPayloadV1
engine_forkchoiceUpdatedV3 eth_getBlockAccessList eth_getMinerDataByBlockHash eth_getMinerDataByBlockNumber
eth_getQuorumPayload eth_sendRawPrivateTransaction goquorum_storeRaw miner_setEtherbase perm_addNodesToAllowlist
plugins_reloadPluginConfig testing_buildBlockV1 trace_rawTransaction txpool_besuStatistics txpool_besuTransactions
txpool_besuPendingTransactions txpool_pantheonStatistics txpool_pantheonTransactions
"""


@pytest.mark.parametrize("name", BESU.split())
def test_every_method_of_besu_answers_or_says_why_not(name: str) -> None:
    is_offered = all_methods().knows(name)
    assert is_offered is (reason_declined(name) is None)


def test_other_names_have_no_reason() -> None:
    assert reason_declined("eth_nothing") is None

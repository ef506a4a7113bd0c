"""Every method of Anvil 1.7.1 answers on a development node.

The list is the table of method names in Anvil's binary. Other tests cover the methods of Otterscan and Erigon.
"""

from __future__ import annotations

from pathlib import Path

from tests.clients.dev_scripts import FIRST, OTHER
from tests.integration.test_dev_node import dev

METHODS = {
    "anvil": """
        addBalance autoImpersonateAccount dealERC20 dropAllTransactions dropTransaction dumpState getAutomine
        getBlobByHash getBlobsByTransactionHash getGenesisTime getIntervalMining impersonateAccount
        impersonateSignature increaseTime loadState metadata mine mine_detailed nodeInfo
        removeBlockTimestampInterval removePoolTransactions reorg reset revert rollback setAutomine setBalance
        setBlockGasLimit setBlockTimestampInterval setChainId setCode setCoinbase setERC20Allowance
        setERC20Balance setFeeAmmLiquidity setFeeToken setIntervalMining setLoggingEnabled setMinGasPrice
        setNextBlockBaseFeePerGas setNextBlockTimestamp setNonce setRpcUrl setStorageAt setTime
        setValidatorFeeToken snapshot stopImpersonatingAccount
    """,
    "debug": """
        codeByHash dbGet getRawTransaction traceBlockByHash traceBlockByNumber traceCall traceTransaction
    """,
    "eth": """
        accounts blobBaseFee blockNumber call chainId coinbase config createAccessList estimateGas feeHistory
        fillTransaction gasPrice getAccount getAccountInfo getBalance getBlockByHash getBlockByNumber
        getBlockReceipts getBlockTransactionCountByHash getBlockTransactionCountByNumber getCode
        getFilterChanges getFilterLogs getLogs getProof getRawTransactionByBlockHashAndIndex
        getRawTransactionByBlockNumberAndIndex getRawTransactionByHash getStorageAt getStorageValues
        getTransactionByBlockHashAndIndex getTransactionByBlockNumberAndIndex getTransactionByHash
        getTransactionBySenderAndNonce getTransactionCount getTransactionReceipt getUncleByBlockHashAndIndex
        getUncleByBlockNumberAndIndex getUncleCountByBlockHash getUncleCountByBlockNumber getWork hashrate
        maxPriorityFeePerGas networkId newBlockFilter newFilter newPendingTransactionFilter protocolVersion
        requestAccounts sendRawTransaction sendRawTransactionSync sendTransaction sendTransactionSync
        sendUnsignedTransaction sign signTransaction signTypedData signTypedData_v3 signTypedData_v4 simulateV1
        submitHashrate submitWork syncing uninstallFilter
    """,
    "evm": """
        increaseTime mine mine_detailed revert setAccountNonce setAutomine setBlockGasLimit setIntervalMining
        setNextBlockTimestamp setTime snapshot
    """,
    "hardhat": """
        addBalance autoImpersonateAccount dealERC20 dropAllTransactions dropTransaction dumpState getAutomine
        impersonateAccount loadState metadata mine reset setBalance setCode setCoinbase setLoggingEnabled
        setMinGasPrice setNextBlockBaseFeePerGas setNonce setStorageAt stopImpersonatingAccount
    """,
    "net": """
        listening version
    """,
    "personal": """
        sign
    """,
    "tenderly": """
        addBalance setBalance
    """,
    "trace": """
        block filter replayBlockTransactions transaction
    """,
    "txpool": """
        content inspect status
    """,
    "web3": """
        clientVersion sha3
    """,
}

MISSING = {
    "anvil_setFeeAmmLiquidity": "a chain of another kind (Tempo)",
    "anvil_setFeeToken": "a chain of another kind (Tempo)",
    "anvil_setValidatorFeeToken": "a chain of another kind (Tempo)",
    "debug_codeByHash": "code is addressed by account",
    "debug_dbGet": "the database has other keys",
}
"""Methods that a node with the preset `anvil` does not have, and why."""


def test_every_method_of_anvil_answers(tmp_path: Path) -> None:
    names = [f"{group}_{name}" for group, text in METHODS.items() for name in text.split()]
    assert len(names) == len(set(names))
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        unknown = [name for name in names if node.answer(name).get("error", {}).get("code") == -32601]
    assert unknown == sorted(MISSING)


def test_an_account_and_a_transaction_that_waits_for_its_receipt(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, _):
        receipt = node.ask("eth_sendTransactionSync", {"from": FIRST, "to": OTHER, "value": "0x5"})
        assert receipt["status"] == "0x1"
        found = node.ask("eth_getAccount", OTHER, "latest")
        assert (found["nonce"], found["balance"]) == ("0x0", "0x5")
        assert node.ask("eth_getAccount", OTHER, "0x0") is None


def test_a_chain_without_proof_of_work_has_no_work_for_miners(tmp_path: Path) -> None:
    with dev(tmp_path / "data", "--preset=anvil") as (node, process):
        assert node.error("eth_getWork") == -32000
        assert node.ask("eth_submitWork", "0x" + "00" * 8, "0x" + "11" * 32, "0x" + "22" * 32) is False
    assert "Traceback" not in process.output()

"""Runs web3.py's own synchronous tests over HTTP."""

from __future__ import annotations

import pytest
from web3._utils.module_testing import (
    EthModuleTest,
    GoEthereumAdminModuleTest,
    GoEthereumDebugModuleTest,
    GoEthereumTxPoolModuleTest,
    NetModuleTest,
    Web3ModuleTest,
)


@pytest.mark.usefixtures("txn_hash_with_log")  # this fixture makes the first log of the chain, which the cases expect
class TestEth(EthModuleTest):
    pass


class TestNet(NetModuleTest):
    pass


class TestWeb3(Web3ModuleTest):
    def _check_web3_client_version(self, client_version: str) -> None:
        assert client_version.startswith("ophion/")


class TestAdmin(GoEthereumAdminModuleTest):
    pass


class TestDebug(GoEthereumDebugModuleTest):
    pass


class TestTxPool(GoEthereumTxPoolModuleTest):
    pass

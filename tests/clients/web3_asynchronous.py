"""web3.py's own asynchronous tests, for any connection. The fixture `async_w3` of a module chooses the connection."""

from __future__ import annotations

import pytest
from web3._utils.module_testing import (
    AsyncEthModuleTest,
    AsyncNetModuleTest,
    GoEthereumAsyncDebugModuleTest,
    GoEthereumAsyncTxPoolModuleTest,
)
from web3._utils.module_testing.go_ethereum_admin_module import GoEthereumAsyncAdminModuleTest
from web3._utils.module_testing.web3_module import AsyncWeb3ModuleTest


@pytest.mark.usefixtures("txn_hash_with_log")  # this fixture makes the first log of the chain, which the cases expect
class TestEth(AsyncEthModuleTest):
    pass


class TestNet(AsyncNetModuleTest):
    pass


class TestWeb3(AsyncWeb3ModuleTest):
    def _check_web3_client_version(self, client_version: str) -> None:
        assert client_version.startswith("ophion/")


class TestAdmin(GoEthereumAsyncAdminModuleTest):
    pass


class TestDebug(GoEthereumAsyncDebugModuleTest):
    pass


class TestTxPool(GoEthereumAsyncTxPoolModuleTest):
    pass

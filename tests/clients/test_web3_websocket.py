"""web3.py's own tests over WebSocket, which it knows in the asynchronous form only."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from web3 import AsyncWeb3, WebSocketProvider
from web3._utils.module_testing import (
    AsyncEthModuleTest,
    AsyncNetModuleTest,
    GoEthereumAsyncDebugModuleTest,
    GoEthereumAsyncTxPoolModuleTest,
)
from web3._utils.module_testing.go_ethereum_admin_module import GoEthereumAsyncAdminModuleTest
from web3._utils.module_testing.persistent_connection_provider import PersistentConnectionProviderTest
from web3._utils.module_testing.web3_module import AsyncWeb3ModuleTest


@pytest.fixture(scope="class")
def async_w3(ws_url: str, loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    async def connected() -> Any:
        return await AsyncWeb3(WebSocketProvider(ws_url))

    w3 = loop.run_until_complete(connected())
    yield w3
    loop.run_until_complete(w3.provider.disconnect())


@pytest.mark.usefixtures("txn_hash_with_log")  # the first log of the chain, as the cases expect
class TestEth(AsyncEthModuleTest):
    pass


class TestNet(AsyncNetModuleTest):
    pass


class TestWeb3(AsyncWeb3ModuleTest):
    def _check_web3_client_version(self, client_version: str) -> None:
        assert client_version.startswith("ophion/")


class TestConnection(PersistentConnectionProviderTest):
    OPTIONS = ("--block-period=0.2",)  # cases wait for blocks that come by themselves


class TestAdmin(GoEthereumAsyncAdminModuleTest):
    pass


class TestDebug(GoEthereumAsyncDebugModuleTest):
    pass


class TestTxPool(GoEthereumAsyncTxPoolModuleTest):
    pass

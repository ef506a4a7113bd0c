"""web3.py's own tests over WebSocket, which web3.py supports only asynchronously."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from web3 import AsyncWeb3, WebSocketProvider
from web3._utils.module_testing.persistent_connection_provider import PersistentConnectionProviderTest

from tests.clients.web3_asynchronous import TestAdmin, TestDebug, TestEth, TestNet, TestTxPool, TestWeb3

__all__ = ["TestAdmin", "TestConnection", "TestDebug", "TestEth", "TestNet", "TestTxPool", "TestWeb3"]


@pytest.fixture(scope="class")
def async_w3(ws_url: str, loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    async def connected() -> Any:
        return await AsyncWeb3(WebSocketProvider(ws_url))

    w3 = loop.run_until_complete(connected())
    yield w3
    loop.run_until_complete(w3.provider.disconnect())


class TestConnection(PersistentConnectionProviderTest):
    # make blocks on a schedule, because some cases wait for blocks without transactions
    OPTIONS = ("--block-period=0.2",)

"""Runs web3.py's own asynchronous tests over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from web3 import AsyncHTTPProvider, AsyncWeb3

from tests.clients.web3_asynchronous import TestAdmin, TestDebug, TestEth, TestNet, TestTxPool, TestWeb3

__all__ = ["TestAdmin", "TestDebug", "TestEth", "TestNet", "TestTxPool", "TestWeb3"]


@pytest.fixture(scope="class")
def async_w3(http_url: str, loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    w3 = AsyncWeb3(AsyncHTTPProvider(http_url))
    yield w3
    loop.run_until_complete(w3.provider.disconnect())

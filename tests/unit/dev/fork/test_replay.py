"""A block of the source that cannot be read is one clear error."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ophion.dev.fork.replay import replay
from ophion.errors import ForkSourceError

HASH = b"\x11" * 32
BLOCK = {"transactions": ["0x" + HASH.hex()], "timestamp": "0x1", "mixHash": "0x" + "00" * 32}
GOOD = {
    "eth_getTransactionByHash": {"blockNumber": "0x1", "transactionIndex": "0x0"},
    "eth_getBlockByNumber": BLOCK,
    "eth_getRawTransactionByHash": "0x02",
}


class Source:
    """A source that sends these answers."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.source = SimpleNamespace(name="http://127.0.0.1:1")

    async def ask(self, method: str, params: list[Any]) -> Any:
        return self.answers[method]


@pytest.mark.parametrize(
    "wrong",
    [
        {"eth_getTransactionByHash": {"blockNumber": "0x1"}},
        {"eth_getTransactionByHash": {"blockNumber": "0x1", "transactionIndex": None}},
        {"eth_getTransactionByHash": "0x"},
        {"eth_getBlockByNumber": {}},
        {"eth_getBlockByNumber": {**BLOCK, "timestamp": "soon"}},
        {"eth_getBlockByNumber": {**BLOCK, "baseFeePerGas": 7}},
        {"eth_getBlockByNumber": {**BLOCK, "mixHash": "0x00"}},
        {"eth_getBlockByNumber": []},
        {"eth_getRawTransactionByHash": "0xzz"},
        {"eth_getRawTransactionByHash": 7},
        {"eth_getRawTransactionByHash": None},
    ],
)
def test_an_unreadable_block_is_an_error_of_the_source(wrong: dict[str, Any]) -> None:
    dev: Any = SimpleNamespace(fork=Source({**GOOD, **wrong}))
    with pytest.raises(ForkSourceError, match=r"http://127\.0\.0\.1:1"):
        asyncio.run(replay(dev, HASH))

"""Providers of web3.py without a socket.

    w3 = chain.web3                                     Web3(ChainProvider(chain))
    w3 = AsyncWeb3(AsyncChainProvider(chain))

web3.py is not a dependency of Ophion and must be installed separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

try:
    from web3 import AsyncWeb3, Web3
    from web3.providers.async_base import AsyncBaseProvider
    from web3.providers.base import BaseProvider
except ImportError as error:
    raise ImportError("chain.web3 needs web3.py: pip install 'ophion[web3]'") from error

if TYPE_CHECKING:
    from ophion.sdk.chain import Chain


def _message(method: str, params: Any) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, default=_as_text)


def _as_text(value: object) -> object:
    if isinstance(value, bytes | bytearray):
        return "0x" + value.hex()
    if isinstance(value, str):
        return str(value)
    # web3.py passes its own mappings
    return dict(value)  # type: ignore[call-overload]


class ChainProvider(BaseProvider):
    """Answers requests of `Web3` in the calling thread."""

    def __init__(self, chain: Chain) -> None:
        super().__init__()
        self._dispatch = chain.node.dispatch

    def make_request(self, method: Any, params: Any) -> Any:
        return orjson.loads(self._dispatch.answer(_message(method, params)))

    def is_connected(self, show_traceback: bool = False) -> bool:
        return True


class AsyncChainProvider(AsyncBaseProvider):
    """Answers requests of `AsyncWeb3` in a thread, so that the event loop of the caller goes on."""

    def __init__(self, chain: Chain) -> None:
        super().__init__()
        self._dispatch = chain.node.dispatch

    async def make_request(self, method: Any, params: Any) -> Any:
        return orjson.loads(await self._dispatch.answer_async(_message(method, params)))

    async def is_connected(self, show_traceback: bool = False) -> bool:
        return True


def web3_of(chain: Chain) -> Web3:
    """Return a `Web3` on this chain; its default account is that of the chain."""
    w3 = Web3(ChainProvider(chain))
    w3.eth.default_account = w3.to_checksum_address(chain.default_account.address)
    return w3


def async_web3_of(chain: Chain) -> AsyncWeb3[Any]:
    """Return an `AsyncWeb3` on this chain."""
    w3: AsyncWeb3[Any] = AsyncWeb3(AsyncChainProvider(chain))
    w3.eth.default_account = w3.to_checksum_address(chain.default_account.address)
    return w3

"""Providers of web3.py without a socket.

    w3 = chain.web3                                     only the middleware that this chain needs
    w3 = Web3(ChainProvider(chain))                     all middleware of web3.py
    w3 = AsyncWeb3(AsyncChainProvider(chain))

By default, web3.py asks for chain id, block, fees and gas before each transaction. These requests take longer than the
transaction itself. The chain checks and fills in the same fields, so `chain.web3` leaves these requests out.

web3.py is not a dependency of Ophion and must be installed separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

try:
    from web3 import AsyncWeb3, Web3
    from web3.middleware import AttributeDictMiddleware, GasPriceStrategyMiddleware
    from web3.middleware.base import Web3Middleware
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
    # convert to a dict, because web3.py passes its own mappings
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
    """Answers requests of `AsyncWeb3` in a thread, so that the event loop of the caller is not blocked."""

    def __init__(self, chain: Chain) -> None:
        super().__init__()
        self._dispatch = chain.node.dispatch

    async def make_request(self, method: Any, params: Any) -> Any:
        return orjson.loads(await self._dispatch.answer_async(_message(method, params)))

    async def is_connected(self, show_traceback: bool = False) -> bool:
        return True


class GivenFeesMiddleware(GasPriceStrategyMiddleware):
    """Checks fees that the caller has given or a gas price strategy chooses. The chain fills in all other fees."""

    def request_processor(self, method: Any, params: Any) -> Any:
        return super().request_processor(method, params) if self._has_fees(method, params) else (method, params)

    async def async_request_processor(self, method: Any, params: Any) -> Any:
        if not self._has_fees(method, params):
            return method, params
        return await super().async_request_processor(method, params)

    def _has_fees(self, method: Any, params: Any) -> bool:
        return method == "eth_sendTransaction" and (
            not _FEES.isdisjoint(params[0]) or self._w3.eth.generate_gas_price(params[0]) is not None
        )


class RevertErrorMiddleware(Web3Middleware):
    """If a transaction would revert, raises the error that a gas estimate of web3.py raises."""

    def wrap_make_request(self, make_request: Any) -> Any:
        def request(method: Any, params: Any) -> Any:
            response = make_request(method, params)
            if method == "eth_sendTransaction" and _is_reverted(response):
                self._w3.eth.estimate_gas(params[0])
            return response

        return request

    async def async_wrap_make_request(self, make_request: Any) -> Any:
        async def request(method: Any, params: Any) -> Any:
            response = await make_request(method, params)
            if method == "eth_sendTransaction" and _is_reverted(response):
                await self._w3.eth.estimate_gas(params[0])  # type: ignore[misc]  # `_w3` is an AsyncWeb3
            return response

        return request


def _is_reverted(response: Any) -> bool:
    error = response.get("error")
    return error is not None and error.get("code") == _REVERTED_CODE


_REVERTED_CODE = 3
_FEES = {"gasPrice", "maxFeePerGas", "maxPriorityFeePerGas"}
_MIDDLEWARE = (
    (GivenFeesMiddleware, "gas_price_strategy"),
    (AttributeDictMiddleware, "attrdict"),
    (RevertErrorMiddleware, "gas_estimate"),
)


def web3_of(chain: Chain) -> Web3:
    """Return a `Web3` on this chain. Its default account is the default account of the chain."""
    w3 = Web3(ChainProvider(chain), middleware=_MIDDLEWARE)
    w3.eth.default_account = w3.to_checksum_address(chain.default_account.address)
    return w3


def async_web3_of(chain: Chain) -> AsyncWeb3[Any]:
    """Return an `AsyncWeb3` on this chain."""
    w3: AsyncWeb3[Any] = AsyncWeb3(AsyncChainProvider(chain), middleware=_MIDDLEWARE)
    w3.eth.default_account = w3.to_checksum_address(chain.default_account.address)
    return w3

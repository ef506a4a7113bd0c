"""titanoboa on a chain, without a socket.

    import boa
    from ophion.sdk.titanoboa import boa_environment

    with boa.set_env(boa_environment(chain)):
        contract = boa.load("Token.vy", 1000)

titanoboa is not a dependency of Ophion and must be installed separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

try:
    from boa.network import NetworkEnv
    from boa.rpc import RPC, RPCError
    from eth_account import Account
except ImportError as error:
    raise ImportError("the environment needs titanoboa: pip install titanoboa") from error

if TYPE_CHECKING:
    from ophion.sdk.chain import Chain


class ChainRpc(RPC):
    """Answers the requests of titanoboa in the calling thread."""

    def __init__(self, chain: Chain) -> None:
        self._dispatch = chain.node.dispatch

    @property
    def identifier(self) -> str:
        return "ophion"

    @property
    def name(self) -> str:
        return "Ophion in this process"

    def fetch(self, method: str, params: Any) -> Any:
        reply = orjson.loads(self._dispatch.answer_request(method, params))
        if "error" in reply:
            raise RPCError.from_json(reply["error"])
        return reply["result"]

    def fetch_multi(self, payloads: list[tuple[str, Any]]) -> list[Any]:
        return [self.fetch(method, params) for method, params in payloads]


def boa_environment(chain: Chain) -> Any:
    """Return an environment of titanoboa with the accounts of the chain. The first account is the sender."""
    environment = NetworkEnv(rpc=ChainRpc(chain))
    for account in chain.accounts:
        environment.add_account(Account.from_key(account.key))
    environment.set_eoa(Account.from_key(chain.accounts[0].key))
    return environment

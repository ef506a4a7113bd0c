"""Serves the RPC interface of a node with private transactions in process. The enclave holds public test keys."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ophion.enclave.embedded import EmbeddedEnclave
from ophion.enclave.interface import Enclave
from ophion.enclave.remote.client import RemoteEnclave
from ophion.enclave.remote.http import HttpClient
from ophion.enclave_http.application import enclave_service
from ophion.native.crypto import PrivateKey
from ophion.native.enclave import EnclaveKeyring
from ophion.native.privacy import sign_private_transaction
from ophion.node.config import NodeConfig
from ophion.node.privacy import build_privacy
from ophion.privacy.options import PrivacyConfig
from ophion.privacy.service import Privacy
from ophion.producer.options import MinerConfig
from ophion.rpc.schema.registry import HTTP
from ophion.rpc.services.context import RpcLimits
from ophion.rpc.services.filters import Filters
from ophion.rpc.services.private_filters import PrivateFilters
from ophion.rpc.services.private_subscriptions import PrivateSubscriptions
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.thread_pools import InlineLanes
from ophion.testing.node_core import COINBASE, TestCore, open_core
from ophion.testing.private_transactions import ENCLAVE_KEYS, ENCLAVE_SECRETS, NUMBER_CONTRACT
from ophion.testing.signing import DEV_KEYS
from tests.unit.rpc.interface import GROUPS, Interface

CHAIN_ID = 1337
FROM, FOR, THIRD = ENCLAVE_KEYS
PRIVACY = PrivacyConfig(enabled=True)


class PrivateInterface(Interface):
    """A node whose enclave holds the keys of both participants."""

    privacy: Privacy

    def __init__(
        self, node: TestCore, loop: asyncio.AbstractEventLoop, config: NodeConfig, keys: int, outside: int | None
    ) -> None:
        super().__init__(node, RpcLimits(), loop)
        lanes, entropy = InlineLanes(), SystemEntropy()
        self.enclave = EmbeddedEnclave(node.chain.store, EnclaveKeyring(ENCLAVE_SECRETS[:keys]), lanes, entropy)
        asked: Enclave = self.enclave
        if outside is not None:
            asked = RemoteEnclave(HttpClient(f"http://127.0.0.1:{outside}"), FROM)
        self.privacy = build_privacy(config, node.core, asked, lanes, entropy)
        executor = self.privacy.executor
        filters = PrivateFilters(Filters(node.clock, entropy), self.privacy.ledger)
        executor.events.listen(filters.on_followed)
        self.subscriptions = PrivateSubscriptions(
            self.privacy.ledger, executor.events, lanes.private, self.privacy.tenants
        )
        self.context = replace(
            self.context,
            privacy=self.privacy,
            private_filters=filters,
            private_subscriptions=self.subscriptions,
        )
        self.dispatcher = self.dispatcher_for(HTTP, (*GROUPS, "eea"))
        self.nonce = 0

    def signed(self, data: bytes = NUMBER_CONTRACT, **members: Any) -> str:
        """Return a signed private transaction of the first dev account."""
        key: PrivateKey = members.pop("key", DEV_KEYS[0])
        usual: dict[str, Any] = {
            "nonce": 0,
            "gas_price": 10**9,
            "gas_limit": 3_000_000,
            "to": None,
            "private_from": FROM,
            "chain_id": self.node.chain.spec.chain_id,
        }
        if "privacy_group_id" not in members:
            usual["private_for"] = [FOR]
        return "0x" + sign_private_transaction(key.secret(), data=data, **(usual | members)).hex()

    def seal(self) -> None:
        """Make a block from the pool."""
        self.run(self.node.seal())

    def send(self, data: bytes = NUMBER_CONTRACT, **members: Any) -> str:
        """Send a private transaction and mine it. Returns the hash of the marker."""
        marker: str = self.ask("eea_sendRawTransaction", self.signed(data, **members))
        self.seal()
        return marker

    @contextmanager
    def serving(self, port: int) -> Iterator[None]:
        """Serve the enclave on this port during the `with` block."""
        with self.running(enclave_service(self.enclave, "127.0.0.1", port, ("*",))):
            yield


@contextmanager
def open_private(
    path: Path,
    privacy: PrivacyConfig = PRIVACY,
    keys: int = 2,
    marker_key: PrivateKey | None = DEV_KEYS[1],
    outside: int | None = None,
) -> Iterator[PrivateInterface]:
    """Open the interface of the node in this directory. A second call simulates a restart.

    With a port `outside`, the node uses its enclave remotely; the enclave answers while `serving` runs.
    """
    if marker_key is not None:
        file = path / "marker.key"
        file.write_text(marker_key.secret().hex())
        privacy = replace(privacy, marker_key_file=file)
    config = NodeConfig(miner=MinerConfig(coinbase=COINBASE), privacy=privacy)
    gc.collect()  # free the database, so that a restart can open it again
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        with open_core(path, config) as node:
            found = PrivateInterface(node, loop, config, keys, outside)
            tasks = [
                loop.create_task(service.run(lambda: None))
                for service in (found.enclave, found.privacy.executor, found.subscriptions)
            ]
            try:
                yield found
            finally:
                loop.run_until_complete(_stop(tasks))
                vars(found).clear()
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _stop(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

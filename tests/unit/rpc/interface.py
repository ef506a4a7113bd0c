"""Serves the RPC interface of a node in process: a real chain, pool and producer, without sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chain.import_file import BlockFileImport
from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.native.store import open_store
from ophion.node.config import NodeConfig
from ophion.node.validator_contract import read_contracts
from ophion.peers.service import PeerService
from ophion.peers.settings import PeerSettings
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.endpoints.services import method_table
from ophion.rpc.schema.registry import HTTP, Caller
from ophion.rpc.services.block_json_cache import BlockJsonCache
from ophion.rpc.services.context import Endpoint, NodeInfo, RpcContext, RpcLimits
from ophion.rpc.services.filters import Filters
from ophion.rpc.services.receipt_waits import ReceiptWaits
from ophion.rpc.services.subscriptions import Subscriptions
from ophion.rpc.transport.replies import Answer, PendingReply
from ophion.rpc.transport.streaming import StreamedAnswer, collected
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.runtime.supervisor import Service
from ophion.runtime.thread_pools import InlineLanes
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.signing import DEV_KEYS
from ophion.wallet.keyring import Keyring

GROUPS = (
    *(
        "admin",
        "clique",
        "debug",
        "erigon",
        "eth",
        "ibft",
        "miner",
        "net",
        "ots",
        "parity",
        "perm",
        "personal",
        "plugins",
        "qbft",
        "trace",
        "txpool",
        "web3",
    ),
)
VERSION = "Ophion/v0.0.0/linux-x86_64/python-3.11"
T = TypeVar("T")


class Interface:
    """A client of the RPC interface."""

    def __init__(
        self, node: TestCore, limits: RpcLimits, loop: asyncio.AbstractEventLoop, accounts: Keyring | None = None
    ) -> None:
        self.node = node
        self.loop = loop
        lanes = InlineLanes()
        queries, pool, chain = node.queries, node.pool, node.chain
        filters = Filters(node.clock, SystemEntropy())
        chain.events.listen(filters.on_chain_event)
        pool.events.listen(filters.on_pool_event)
        waits = ReceiptWaits()
        chain.events.listen(lambda event: waits.on_head(lambda hash: queries.transaction_position(hash) is not None))
        genesis = chain.canonical(0)
        assert genesis is not None
        self.context = RpcContext(
            queries=queries,
            pool=pool,
            mining=node.mining,
            lanes=lanes,
            rendered=BlockJsonCache(chain.store, queries.with_total_difficulty),
            fees=node.core.fees,
            bad_blocks=node.core.importer.bad_blocks,
            permissions=node.core.permissions,
            filters=filters,
            subscriptions=Subscriptions(
                chain.store, chain.events, pool.events, lanes, queries.with_total_difficulty, lambda: b"false"
            ),
            node=NodeInfo(VERSION, DEV_KEYS[0].public_key, chain.spec.chain_id, genesis.hash),
            peers=PeerService(PeerSettings(), DEV_KEYS[0], (), node.clock, SystemEntropy()),
            limits=limits,
            receipt_waits=waits,
            accounts=accounts,
            clique=node.core.proposals if chain.spec.engine is EngineKind.CLIQUE else None,
            ibft=node.core.bft if chain.spec.engine is EngineKind.IBFT2 else None,
            qbft=node.core.bft if chain.spec.qbft is not None else None,
            endpoints=lambda: {"jsonrpc": Endpoint("127.0.0.1", 8545)},
        )
        self.dispatcher = self.dispatcher_for(HTTP)

    def dispatcher_for(self, transport: str, groups: Sequence[str] = GROUPS) -> Dispatcher:
        return Dispatcher(method_table(self.context, groups, transport), self.loop)

    @contextmanager
    def with_peers(self) -> Iterator[PeerService]:
        """Run the peer service during the `with` block."""
        service = self.context.peers
        assert service is not None
        with self.running(service):
            yield service

    @contextmanager
    def running(self, service: Service) -> Iterator[None]:
        """Run a service during the `with` block."""

        async def start() -> asyncio.Task[None]:
            ready = asyncio.Event()
            task = asyncio.create_task(service.run(ready.set))
            await ready.wait()
            return task

        async def stop(task: asyncio.Task[None]) -> None:
            task.cancel()
            await asyncio.wait({task})

        task = self.run(start())
        try:
            yield
        finally:
            self.run(stop(task))

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the interface's loop."""
        return self.loop.run_until_complete(story)

    def message(self, body: bytes, dispatcher: Dispatcher | None = None, caller: Caller | None = None) -> Any:
        """Return the parsed answer to any message."""

        async def main() -> Any:
            reply = (dispatcher or self.dispatcher).handle(body, caller)
            if isinstance(reply, PendingReply):
                waiting: asyncio.Future[bytes | Answer | StreamedAnswer] = self.loop.create_future()
                reply.deliver = waiting.set_result
                reply = await asyncio.wait_for(waiting, 60)
            if isinstance(reply, StreamedAnswer):
                reply = await collected(reply)
            return json.loads(reply if isinstance(reply, bytes) else reply.join())

        return self.run(main())

    def request(self, name: str, *params: Any) -> Any:
        """Return the whole answer to a request."""
        return self.message(json.dumps({"jsonrpc": "2.0", "id": 1, "method": name, "params": params}).encode())

    def ask(self, name: str, *params: Any) -> Any:
        """Return the result of a request that must succeed."""
        answer = self.request(name, *params)
        assert "result" in answer, answer
        return answer["result"]

    def error(self, name: str, *params: Any) -> tuple[int, str]:
        """Return code and text of a request that must fail."""
        answer = self.request(name, *params)
        assert "error" in answer, answer
        return answer["error"]["code"], answer["error"]["message"]


@contextmanager
def open_interface(
    path: Path,
    genesis: Genesis | None = None,
    config: NodeConfig = DEV_CONFIG,
    limits: RpcLimits | None = None,
    before: Callable[[TestCore], None] = lambda node: None,
    accounts: Keyring | None = None,
) -> Iterator[Interface]:
    """Open the interface of the node in this directory."""
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        with open_core(path, config, genesis) as node:
            before(node)
            yield Interface(node, limits or RpcLimits(), loop, accounts)
    finally:
        # cancel the requests that are still pending
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left))
        asyncio.set_event_loop(None)
        loop.close()


def import_chain(path: Path, genesis_file: Path, blocks_file: Path, verifies_work: bool = False) -> Genesis:
    """Import a block file into a new database."""
    genesis = parse_genesis(genesis_file.read_bytes())
    store = open_store(path, durable=False)
    try:
        chain = Chain.open(store, genesis, engine_for(genesis.spec, verifies_work=verifies_work))
        clock = SystemClock()
        core = ImportCore(chain, clock)
        read_contracts(chain, core.state_after)
        BlockFileImport(core, clock).run([blocks_file])
    finally:
        store.close()
    return genesis

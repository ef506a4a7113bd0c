"""Peers that serve a state, honestly or not, over real `SnapPeer` objects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ophion.chain.chain import Chain
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.native.crypto import PrivateKey
from ophion.native.store import Store, open_store
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Capability, SharedCapability
from ophion.peers.rlpx.hello import Hello
from ophion.peers.snap.messages import ANSWERS, Code, decode_request
from ophion.peers.snap.peer import SnapPeer, SnapPeers
from ophion.peers.snap.protocol import SnapProtocol
from ophion.peers.snap.request_handler import empty_response, read_response
from ophion.runtime.clock import SystemClock
from ophion.runtime.thread_pools import Lanes

CODE = "0x600160005500"
Lie = Callable[[Code, bytes, bytes], "bytes | None"]
"""Gets a code, a request and the right response. Returns the response to send; None sends nothing."""


@contextmanager
def state_of(path: Path, accounts: int, slots: int, changed: int = 0) -> Iterator[Chain]:
    """Write a genesis state with contracts. `changed` accounts and slots differ from those of other numbers."""
    storage = {f"0x{number:064x}": hex(number + (changed if number % 50 == 0 else 0)) for number in range(1, slots + 1)}
    alloc: dict[str, object] = {
        f"{number:040x}": {"balance": hex(7 + number + (changed if number % 20 == 0 else 0))}
        for number in range(1 + changed, accounts + 1)
    }
    alloc |= {f"cc{number:038x}": {"balance": "0x1", "code": CODE, "storage": storage} for number in range(3)}
    alloc |= {f"dd{n:038x}": {"balance": "0x1", "code": CODE + f"{n + changed:02x}"} for n in range(5)}
    alloc |= {f"ee{n:038x}": {"nonce": "0x1", "storage": {"0x1": hex(n + 1 + changed)}} for n in range(40)}
    values = {
        "config": {"chainId": 5, "ethash": {"fixeddifficulty": 1}},
        "difficulty": "0x1",
        "gasLimit": "0x1000000",
        "alloc": alloc,
    }
    genesis = parse_genesis(json.dumps(values))
    store = open_store(path, durable=False)
    try:
        yield Chain.open(store, genesis, engine_for(genesis.spec))
    finally:
        store.close()


def root_of(chain: Chain) -> bytes:
    return chain.head.header.state_root


class StateServer:
    """The link of a peer that answers from a database."""

    waiting_bytes = 0

    def __init__(
        self, store: Store | None, max_bytes: int = 4000, lie: Lie | None = None, delay_s: float = 0.0
    ) -> None:
        """`store` is None for a peer without states. `delay_s` is the time of a response."""
        self.store = store
        self.max_bytes = max_bytes
        self.lie = lie
        self.delay_s = delay_s
        self.is_open = True
        self.answered = 0
        self.reason: DisconnectReason | None = None
        self.snap: SnapPeer | None = None

    def send(self, shared: SharedCapability, code: int, payload: bytes, may_drop: bool) -> bool:
        asyncio.get_running_loop().call_later(self.delay_s, self._answer, Code(code), payload)
        return True

    def _answer(self, code: Code, payload: bytes) -> None:
        request = decode_request(code, payload)
        request = replace(request, max_bytes=min(request.max_bytes, self.max_bytes))
        response: bytes | None = empty_response(request)
        if self.store is not None:
            response = read_response(self.store, request)
        if self.lie is not None and response is not None:
            response = self.lie(code, payload, response)
        self.answered += 1
        if self.is_open and response is not None and self.snap is not None:
            self.snap.received(ANSWERS[code], response)

    def limit(self, shared: SharedCapability, code: int, size: int) -> None:
        """Ignore limits."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        raise AssertionError("not used")

    def disconnect(self, reason: DisconnectReason, text: str) -> None:
        self.is_open = False
        self.reason = reason
        if self.snap is not None:
            self.snap.closed()


def connect(servers: list[StateServer], own: Store, lanes: Lanes) -> SnapPeers:
    """Connect a node with the database `own` to peers."""
    peers = SnapPeers()
    lane: FairWorkerQueue[Peer] = FairWorkerQueue(lanes.peers, lambda peer: False)
    protocol = SnapProtocol(own, lane, lambda peer: False, SystemClock(), peers)
    (snap,) = protocol.capabilities
    for number, server in enumerate(servers, 1):
        hello = Hello.of("test", (), 30303, PrivateKey(bytes([number]) * 32).public_key)
        shared = [SharedCapability(snap, 33), SharedCapability(Capability("eth", 68, 17), 16)]
        ends = {"local": ("127.0.0.1", 1), "remote": ("127.0.0.1", 2)}
        peer = Peer(server, hello, shared, **ends, is_inbound=True, since=0.0)
        attached = protocol.attach(peer, 1)
        assert isinstance(attached, SnapPeer)
        server.snap = attached
    return peers

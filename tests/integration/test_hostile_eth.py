"""Lying peers over real sockets, against a real node: the node disconnects them and keeps working."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.native.crypto import PrivateKey
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.eth.field_decoding import enclosed
from ophion.peers.eth.messages import Code, Status, TransactionHashes, encode_new_block, encode_new_hashes
from ophion.peers.eth.versions import ETH_68, NAME
from ophion.peers.peer import Peer
from ophion.peers.peer_table import PeerEvent, PeerGone
from ophion.peers.service import PeerService
from ophion.peers.settings import PeerSettings
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until

PEERS = ("--p2p-port=0", "--discovery-enabled=false", "--rpc-http-api=ETH,NET,ADMIN,TXPOOL")
_MIB = 1 << 20


class Liar:
    """A peer that starts correctly and then follows the script of a test."""

    capabilities = (ETH_68.capability,)

    def __init__(self, change: Callable[[Status], Status] = lambda status: status) -> None:
        self.change = change
        self.peer: Peer | None = None
        self.asked: list[tuple[int, bytes]] = []
        self.answer: Callable[[int, bytes], None] = lambda code, payload: None

    def attach(self, peer: Peer, version: int) -> Liar:
        self.peer = peer
        return self

    def received(self, code: int, payload: bytes) -> None:
        if code == Code.STATUS:
            # answer with the node's own Status, changed by the test
            self.send(Code.STATUS, ETH_68.write_status(self.change(ETH_68.read_status(payload))))
        else:
            self.asked.append((code, payload))
            self.answer(code, payload)

    def send(self, code: Code, payload: bytes) -> None:
        assert self.peer is not None
        if self.peer.is_open:
            self.peer.send(NAME, code, payload)

    def oversized(self, code: int, size: int) -> None: ...

    def closed(self) -> None:
        """Do nothing."""


def met(node: NodeProcess, liar: Liar, story: Callable[[], Coroutine[Any, Any, None]]) -> PeerGone:
    """Connect to a node, run the script, and wait until the node disconnects. Returns the reason of the
    disconnection.
    """

    async def run() -> PeerGone:
        service = PeerService(PeerSettings(), PrivateKey(os.urandom(32)), (liar,), SystemClock(), SystemEntropy())
        gone: list[PeerGone] = []

        def on_event(event: PeerEvent) -> None:
            if isinstance(event, PeerGone):
                gone.append(event)

        service.peers.events.listen(on_event)
        running = asyncio.create_task(service.run(lambda: None))
        service.add_static(Enode.parse(node.rpc("net_enode")))
        try:
            await until(lambda: liar.peer is not None)
            await asyncio.sleep(0.2)
            await story()
            await until(lambda: bool(gone), 60)
            return gone[0]
        finally:
            running.cancel()
            await asyncio.wait({running})

    return asyncio.run(run())


def memory(node: NodeProcess) -> int:
    """Return the bytes of a node's memory that are not backed by a file."""
    lines = Path(f"/proc/{node.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """Start one node that all attacks use."""
    with NodeProcess(tmp_path_factory.mktemp("hostile") / "node", *MINING, *PEERS) as node:
        assert makes_blocks(node)
        yield node


def makes_blocks(node: NodeProcess) -> bool:
    """Return whether the node still mines a transaction."""
    nonce = int(node.rpc("eth_getTransactionCount", "0x" + DEV_KEYS[1].address.hex(), "latest"), 16)
    return bool(node.receipt(node.send(legacy_transaction(DEV_KEYS[1], nonce)))["status"] == "0x1")


def test_a_million_announcements(node: NodeProcess) -> None:
    before = memory(node)
    liar = Liar()

    async def story() -> None:
        for start in range(0, 1_000_000, 4096):
            hashes = [number.to_bytes(32, "big") for number in range(start, start + 4096)]
            liar.send(Code.NEW_POOLED_TRANSACTION_HASHES, TransactionHashes(bytes(4096), [99] * 4096, hashes).encode())
            await asyncio.sleep(0)
        for start in range(0, 200_000, 1000):
            blocks = [(number.to_bytes(32, "big"), 2) for number in range(start, start + 1000)]
            liar.send(Code.NEW_BLOCK_HASHES, encode_new_hashes(blocks))
            await asyncio.sleep(0)

    ended = met(node, liar, story)
    assert not ended.by_us
    assert makes_blocks(node)
    assert memory(node) - before < 100 * _MIB


@pytest.mark.parametrize("kind", ["never linking", "endless", "empty", "garbage"])
def test_a_better_chain_that_is_none(node: NodeProcess, kind: str) -> None:
    # the hostile peer claims a longer chain and answers header requests at once
    liar = Liar(lambda status: replace(status, total_difficulty=2**70, best_hash=b"\x07" * 32))
    mined: dict[str, str] = node.rpc("eth_getBlockByNumber", "latest", False)

    def answer(code: int, payload: bytes) -> None:
        if code != Code.GET_BLOCK_HEADERS:
            return
        request_id = rlp.decode_int(rlp.decode_list(payload)[0])
        forged = [_header(number) for number in range(1, 193)]
        bodies = {
            "never linking": rlp.list_of(forged),
            "endless": rlp.list_of(forged * 50),
            "empty": rlp.EMPTY_LIST,
            "garbage": b"\xc3\x01\x02\x03",
        }
        liar.send(Code.BLOCK_HEADERS, enclosed(request_id, bodies[kind]))

    def _header(number: int) -> bytes:
        empty = bytes.fromhex(mined["parentHash"][2:])
        fields = [empty, empty, bytes(20), empty, empty, empty, bytes(256)]
        return rlp.encode([*fields, 1, number, 10**7, 0, number, b"", empty, bytes(8)])

    liar.answer = answer

    async def story() -> None:
        assert node.rpc("eth_mining") is True

    ended = met(node, liar, story)
    assert ended.reason in (DisconnectReason.BREACH, DisconnectReason.USELESS)
    assert makes_blocks(node)
    assert node.rpc("eth_mining") is True


@pytest.mark.parametrize(
    ("code", "payload"),
    [
        (Code.NEW_BLOCK, bytes(9 * _MIB)),
        (Code.NEW_BLOCK, encode_new_block(rlp.encode([[b"\xff"] * 15, [], []]), 2**99)),
        (Code.TRANSACTIONS, rlp.list_of([b"\x80"] * (4 * _MIB))),
        (Code.BLOCK_HEADERS, enclosed(77, b"\xc0")),
        (Code.NEW_POOLED_TRANSACTION_HASHES, bytes(_MIB)),
        (Code.GET_BLOCK_HEADERS, b"\xc1\x01"),
    ],
)
def test_unexpected_messages_end_the_connection(node: NodeProcess, code: Code, payload: bytes) -> None:
    liar = Liar()

    async def story() -> None:
        liar.send(code, payload)

    ended = met(node, liar, story)
    assert ended.reason is DisconnectReason.BREACH
    assert makes_blocks(node)


def test_a_peer_that_asks_without_reading(node: NodeProcess) -> None:
    before = memory(node)
    liar = Liar()

    async def story() -> None:
        for number in range(100_000):
            if liar.peer is None or not liar.peer.is_open:
                return
            liar.send(Code.GET_BLOCK_BODIES, enclosed(number, rlp.encode([bytes(32)] * 900)))
            if number % 50 == 0:
                await asyncio.sleep(0)

    met(node, liar, story)
    assert makes_blocks(node)
    assert memory(node) - before < 100 * _MIB

"""Responses to range requests match the state, in order and with proofs, and a peer cannot exceed its limits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from ophion.chain.chain import Chain
from ophion.errors import DecodeError
from ophion.native.crypto import PrivateKey, keccak256
from ophion.native.tries import trie_root, verify_proof
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Capability, SharedCapability
from ophion.peers.rlpx.hello import Hello
from ophion.peers.snap import request_handler
from ophion.peers.snap.messages import MAX_BYTES, MAX_KEY, Code
from ophion.peers.snap.protocol import SnapProtocol
from ophion.peers.snap.request_handler import MAX_RESPONSE_BYTES, MAX_WAITING, MAX_WAITING_BYTES, SnapRequestHandler
from ophion.primitives import rlp
from ophion.primitives.types import ZERO_HASH
from ophion.runtime.clock import SystemClock
from ophion.runtime.thread_pools import ThreadLanes
from tests.unit.peers.snap.states import (
    ACCOUNTS,
    CODE,
    CONTRACT,
    OTHER_CONTRACT,
    addresses,
    full_account,
    opened,
    slots,
)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    with opened(tmp_path_factory.mktemp("state")) as found:
        yield found


class Line:
    """A connection that records sent messages."""

    is_open = True

    def __init__(self) -> None:
        self.sent: list[tuple[int, bytes]] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.waiting_bytes = 0

    def send(self, shared: SharedCapability, code: int, payload: bytes, may_drop: bool) -> bool:
        self.sent.append((code, payload))
        return True

    def limit(self, shared: SharedCapability, code: int, size: int) -> None:
        """Ignore limits."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        self.tasks.append(asyncio.get_running_loop().create_task(work))
        return True

    def disconnect(self, reason: DisconnectReason, text: str) -> None:
        """Ignore the disconnection."""


def handler_of(chain: Chain, lanes: ThreadLanes, line: Line, *, has_eth: bool = True) -> SnapRequestHandler:
    lane: FairWorkerQueue[Peer] = FairWorkerQueue(lanes.peers, lambda peer: False)
    protocol = SnapProtocol(chain.store, lane, lambda peer: False, SystemClock())
    (snap,) = protocol.capabilities
    shared = [SharedCapability(snap, 33)] + [SharedCapability(Capability("eth", 68, 17), 16)] * has_eth
    key = PrivateKey(bytes([9]) * 32)
    hello = Hello.of("test", (), 30303, key.public_key)
    peer = Peer(line, hello, shared, local=("127.0.0.1", 1), remote=("127.0.0.1", 2), is_inbound=True, since=0.0)
    return protocol.attach(peer, 1)


def ask(chain: Chain, *requests: tuple[Code, rlp.Item]) -> list[list[Any]]:
    """Send requests at once and return the decoded responses."""

    async def story() -> list[list[Any]]:
        line, lanes = Line(), ThreadLanes()
        try:
            handler = handler_of(chain, lanes, line)
            for code, message in requests:
                handler.received(code, rlp.encode(message))
            while line.tasks:
                await line.tasks.pop()
        finally:
            lanes.close()
        assert [code for code, _ in line.sent] == [code + 1 for code, _ in requests]
        return [rlp.decode_list(payload, 100_000) for _, payload in line.sent]

    return asyncio.run(story())


def root(chain: Chain) -> bytes:
    return chain.head.header.state_root


def test_all_accounts_of_a_state_lead_to_its_root(chain: Chain) -> None:
    leaves: list[tuple[bytes, bytes]] = []
    origin, answers = ZERO_HASH, 0
    while True:
        ((_, accounts, _),) = ask(chain, (Code.GET_ACCOUNT_RANGE, [1, root(chain), origin, MAX_KEY, 4000]))
        answers += 1
        if not accounts:
            break
        leaves += [(hash, full_account(slim)) for hash, slim in accounts]
        origin = (int.from_bytes(leaves[-1][0], "big") + 1).to_bytes(32, "big")
    assert answers > 3
    assert [hash for hash, _ in leaves] == sorted(map(keccak256, [*addresses(), CONTRACT, OTHER_CONTRACT]))
    assert trie_root(leaves, False) == root(chain)


def test_a_range_proves_its_ends(chain: Chain) -> None:
    by_hash = {keccak256(address): address for address in (*addresses(), CONTRACT, OTHER_CONTRACT)}
    ordered = sorted(by_hash)
    origin, limit = ordered[10], ordered[20]
    ((request_id, accounts, proof),) = ask(chain, (Code.GET_ACCOUNT_RANGE, [77, root(chain), origin, limit, 10**6]))
    assert rlp.decode_int(request_id) == 77
    assert [hash for hash, _ in accounts] == ordered[10:21]
    # nodes of both paths come once each; a verifier takes those on its path
    for hash, slim in (accounts[0], accounts[-1]):
        path = [node for node in proof if _is_on_path(root(chain), by_hash[hash], proof, node)]
        assert verify_proof(root(chain), by_hash[hash], path) == full_account(slim)
    # the first account after an empty range proves that the range is empty
    between = (int.from_bytes(ordered[5], "big") + 1).to_bytes(32, "big")
    ((_, accounts, proof),) = ask(chain, (Code.GET_ACCOUNT_RANGE, [1, root(chain), between, between, 10**6]))
    assert [hash for hash, _ in accounts] == [ordered[6]]
    assert proof


def _is_on_path(state_root: bytes, address: bytes, nodes: list[bytes], node: bytes) -> bool:
    """Whether a proof node is on the path to an account. Each node of the path names the next node by hash."""
    wanted, key = state_root, keccak256(address).hex()
    by_hash = {keccak256(one): one for one in nodes}
    while wanted in by_hash:
        if by_hash[wanted] is node:
            return True
        items = rlp.decode_list(by_hash[wanted])
        if len(items) != 17:
            return False
        child, key = items[int(key[0], 16)], key[1:]
        wanted = child if isinstance(child, bytes) else b""
    return False


def test_slots_of_accounts_are_served(chain: Chain) -> None:
    contract, other = keccak256(CONTRACT), keccak256(OTHER_CONTRACT)
    expected = [[hash, rlp.encode(value)] for hash, value in sorted(slots().items())]
    request = [1, root(chain), [contract, other], b"", b"", 10**6]
    ((_, found, proof),) = ask(chain, (Code.GET_STORAGE_RANGES, request))
    assert found[0] == expected
    assert len(found[1]) == 1
    assert proof == []
    # a part of the storage has a proof, and no further account follows
    ((_, found, proof),) = ask(chain, (Code.GET_STORAGE_RANGES, [*request[:-1], 1000]))
    assert found == [expected[: len(found[0])]]
    assert 0 < len(found[0]) < 40
    assert proof
    origin = expected[50][0]
    ((_, found, proof),) = ask(chain, (Code.GET_STORAGE_RANGES, [1, root(chain), [contract], origin, b"", 10**6]))
    assert (found, bool(proof)) == ([expected[50:]], True)
    limited = [1, root(chain), [contract, other], b"", expected[9][0], 10**6]
    ((_, found, proof),) = ask(chain, (Code.GET_STORAGE_RANGES, limited))
    assert (found, bool(proof)) == ([expected[:10]], True)


def test_codes_are_served_without_unknown_ones(chain: Chain) -> None:
    hashes = [keccak256(b"unknown"), keccak256(CODE), keccak256(b"")]
    ((_, codes),) = ask(chain, (Code.GET_BYTE_CODES, [1, hashes, 10**6]))
    assert codes == [CODE, b""]


def test_trie_nodes_are_found_by_path(chain: Chain) -> None:
    contract = keccak256(CONTRACT)
    paths = [[b""], [b"\x1a"], [contract, b"", b"\x13"], [b"\x00\x12\x34\x56\x78\x9a"]]
    ((_, nodes),) = ask(chain, (Code.GET_TRIE_NODES, [1, root(chain), paths, 10**6]))
    assert len(nodes) == 5
    assert keccak256(nodes[0]) == root(chain)
    assert keccak256(nodes[1]) == rlp.decode_list(nodes[0])[0xA]
    assert keccak256(nodes[2]) == trie_root([(key, rlp.encode(value)) for key, value in slots().items()], False)
    assert keccak256(nodes[3]) == rlp.decode_list(nodes[2])[3]
    assert nodes[4] == b""
    # an account without an entry ends the response
    ((_, nodes),) = ask(chain, (Code.GET_TRIE_NODES, [1, root(chain), [[b""], [bytes(32), b""], [b""]], 10**6]))
    assert len(nodes) == 1


def test_a_malformed_path_ends_the_connection(chain: Chain) -> None:
    with pytest.raises(DecodeError):
        ask(chain, (Code.GET_TRIE_NODES, [1, root(chain), [[b"\xf0"]], 10**6]))


def test_an_unknown_state_is_an_empty_response(chain: Chain) -> None:
    answers = ask(
        chain,
        (Code.GET_ACCOUNT_RANGE, [1, b"\1" * 32, ZERO_HASH, MAX_KEY, 10**6]),
        (Code.GET_STORAGE_RANGES, [2, b"\1" * 32, [keccak256(CONTRACT)], b"", b"", 10**6]),
        (Code.GET_TRIE_NODES, [3, b"\1" * 32, [[b""]], 10**6]),
    )
    assert answers == [[b"\1", [], []], [b"\2", [], []], [b"\3", []]]


def test_a_response_is_bounded_whatever_the_peer_asks_for(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_handler, "MAX_RESPONSE_BYTES", 2000)
    ((_, accounts, _),) = ask(chain, (Code.GET_ACCOUNT_RANGE, [1, root(chain), ZERO_HASH, MAX_KEY, 2**64 - 1]))
    assert 0 < len(accounts) < ACCOUNTS / 4
    assert MAX_RESPONSE_BYTES <= 512 * 1024


def test_misuse_ends_the_connection(chain: Chain) -> None:
    request = rlp.encode([1, root(chain), ZERO_HASH, MAX_KEY, 1000])

    async def story() -> None:
        lanes = ThreadLanes()
        try:
            line = Line()
            handler = handler_of(chain, lanes, line)
            with pytest.raises(PeerMisbehaved, match="unsolicited AccountRange"):
                handler.received(Code.ACCOUNT_RANGE, rlp.encode([1, [], []]))
            with pytest.raises(PeerMisbehaved, match="GetByteCodes of"):
                handler.received(Code.GET_BYTE_CODES, bytes(MAX_BYTES[Code.GET_BYTE_CODES] + 1))
            with pytest.raises(DecodeError):
                handler.received(Code.GET_BYTE_CODES, b"\xc1")
            for _ in range(MAX_WAITING):
                handler.received(Code.GET_ACCOUNT_RANGE, request)
            with pytest.raises(PeerMisbehaved, match="requests at a time"):
                handler.received(Code.GET_ACCOUNT_RANGE, request)
            with pytest.raises(PeerMisbehaved, match="snap without eth"):
                handler_of(chain, lanes, Line(), has_eth=False).received(Code.GET_ACCOUNT_RANGE, request)
            handler.closed()
            await line.tasks.pop()
            assert line.sent == []
        finally:
            lanes.close()

    asyncio.run(story())


def test_the_bytes_of_waiting_requests_are_bounded(chain: Chain) -> None:
    """A decoded request takes up to twice its size, and each peer may queue requests."""
    request = rlp.encode([1, root(chain), [bytes(32)] * 3800, b"", b"", 1000])

    async def story() -> None:
        lanes, line = ThreadLanes(), Line()
        try:
            handler = handler_of(chain, lanes, line)
            for _ in range(MAX_WAITING_BYTES // len(request)):
                handler.received(Code.GET_STORAGE_RANGES, request)
            with pytest.raises(PeerMisbehaved, match="bytes of snap requests at a time"):
                handler.received(Code.GET_STORAGE_RANGES, request)
            await line.tasks.pop()
            handler.received(Code.GET_STORAGE_RANGES, request)
            await line.tasks.pop()
            handler.closed()
        finally:
            lanes.close()

    asyncio.run(story())


def test_a_slow_reader_waits_and_then_gets_an_empty_response(chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_handler, "RESPONSE_TIMEOUT_S", 0.05)

    async def story() -> None:
        lanes, line = ThreadLanes(), Line()
        line.waiting_bytes = 10**8
        try:
            handler = handler_of(chain, lanes, line)
            handler.received(Code.GET_ACCOUNT_RANGE, rlp.encode([5, root(chain), ZERO_HASH, MAX_KEY, 1000]))
            await line.tasks.pop()
        finally:
            lanes.close()
        assert line.sent == [(Code.ACCOUNT_RANGE, rlp.encode([5, [], []]))]

    asyncio.run(story())

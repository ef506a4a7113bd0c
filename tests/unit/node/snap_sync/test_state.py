"""A state comes whole from honest peers, whatever the others send."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.chain.chain import Chain
from ophion.native.store import BlockHistory, StateDownload, Store, open_store
from ophion.node.snap_sync.peer_choice import PeerChoice, StateGone
from ophion.node.snap_sync.state import StateSync
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.snap.messages import Code
from ophion.primitives import rlp
from ophion.primitives.types import EMPTY_TRIE_ROOT
from ophion.runtime.thread_pools import ThreadLanes
from tests.unit.node.snap_sync.state_servers import Lie, StateServer, connect, root_of, state_of


def finish(store: Store, root: bytes) -> None:
    """Make the downloaded state the state of a block that the database lacked."""
    hash = bytes([9]) * 32
    BlockHistory(store).put_headers([(hash, 9, b"\xc0", 1, 0)], [])
    StateDownload(store).finish(root, hash, 9, [("kept", b"1")])
    assert store.head() == (hash, 9)


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    with state_of(tmp_path_factory.mktemp("state"), 600, 300) as found:
        yield found


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    with state_of(tmp_path_factory.mktemp("later"), 620, 310, changed=3) as found:
        yield found


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    found = open_store(tmp_path, durable=False)
    yield found
    found.close()


def fetch(store: Store, root: bytes, *servers: StateServer) -> None:
    """Fetch the state of one root from peers."""

    async def story() -> None:
        lanes = ThreadLanes()
        try:
            peers = connect(list(servers), store, lanes)
            await StateSync(store, PeerChoice(lambda: [peer for peer in peers if peer.peer.is_open]), lanes).run(root)
        finally:
            lanes.close()

    asyncio.run(story())


def check(store: Store, chain: Chain) -> None:
    """Check that the fetched state is that of the chain, to the last slot and code."""
    root = root_of(chain)
    download = StateDownload(store)
    assert download.root == root
    finish(store, root)
    assert store.meta("snap segment 0") is None
    assert store.meta("kept") == b"1"
    ours, theirs = store.state(root), chain.store.state(root)
    rows, _ = theirs.accounts(bytes(32), 10_000)
    assert [(row[0], *row[2:]) for row in ours.accounts(bytes(32), 10_000)[0]] == [(row[0], *row[2:]) for row in rows]
    for row in rows:
        address = row[1]
        assert address is not None
        assert ours.code(address) == theirs.code(address)
        slots = theirs.storage_range(address, bytes(32), 10_000)[0]
        assert [(one[0], one[2]) for one in ours.storage_range(address, bytes(32), 10_000)[0]] == [
            (one[0], one[2]) for one in slots
        ]


@pytest.mark.parametrize("max_bytes", [100, 900, 5000, 500_000])
def test_a_state_is_fetched_whole(store: Store, chain: Chain, max_bytes: int) -> None:
    fetch(store, root_of(chain), StateServer(chain.store, max_bytes))
    check(store, chain)


def altered(wanted: Code, place: float = 0.5) -> Lie:
    """Change one byte of the responses with this code."""

    def lie(code: Code, request: bytes, response: bytes) -> bytes:
        if code is not wanted:
            return response
        at = int(len(response) * place)
        return response[:at] + bytes([response[at] ^ 1]) + response[at + 1 :]

    return lie


def shortened(code: Code, request: bytes, response: bytes) -> bytes:
    """Leave out an account in the middle of a range."""
    if code is not Code.GET_ACCOUNT_RANGE:
        return response
    new, accounts, proof = rlp.split_list(response, 3)
    items = rlp.split_list(accounts, 1000)
    return rlp.list_of((new, rlp.list_of(items[:1] + items[2:]), proof))


def unproven(code: Code, request: bytes, response: bytes) -> bytes:
    """Leave out the proof."""
    if code not in (Code.GET_ACCOUNT_RANGE, Code.GET_STORAGE_RANGES):
        return response
    new, items, _ = rlp.split_list(response, 3)
    return rlp.list_of((new, items, rlp.EMPTY_LIST))


LIES: dict[str, Lie] = {
    "accounts": altered(Code.GET_ACCOUNT_RANGE),
    "proof": altered(Code.GET_ACCOUNT_RANGE, 0.95),
    "slots": altered(Code.GET_STORAGE_RANGES),
    "code": altered(Code.GET_BYTE_CODES),
    "fewer accounts": shortened,
    "no proof": unproven,
    "garbage": lambda code, request, response: rlp.list_of((rlp.split_list(response, 3)[0], b"\xc1\x80")),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_lying_peer_is_disconnected_and_its_range_is_asked_elsewhere(store: Store, chain: Chain, lie: Lie) -> None:
    liar, honest = StateServer(chain.store, 900, lie), StateServer(chain.store, 900)
    fetch(store, root_of(chain), liar, honest)
    assert liar.reason is DisconnectReason.BREACH
    assert honest.reason is None
    check(store, chain)


def test_a_peer_without_the_state_is_not_asked_again(store: Store, chain: Chain) -> None:
    empty, honest = StateServer(None), StateServer(chain.store, 900)
    fetch(store, root_of(chain), empty, honest)
    assert empty.answered <= 3
    assert empty.is_open
    check(store, chain)


def test_a_state_without_accounts_needs_no_peer(store: Store) -> None:
    fetch(store, EMPTY_TRIE_ROOT, StateServer(None))
    finish(store, EMPTY_TRIE_ROOT)
    assert store.meta("kept") == b"1"
    assert store.state(EMPTY_TRIE_ROOT).accounts(bytes(32), 10)[0] == []


def test_a_state_that_no_peer_has_is_gone(store: Store, chain: Chain) -> None:
    with pytest.raises(StateGone):
        fetch(store, root_of(chain), StateServer(None), StateServer(None))


def until(count: int) -> Lie:
    """Answer some requests, then none."""
    answered = [0]

    def lie(code: Code, request: bytes, response: bytes) -> bytes:
        answered[0] += 1
        if answered[0] <= count:
            return response
        lists = 1 if code in (Code.GET_BYTE_CODES, Code.GET_TRIE_NODES) else 2
        return rlp.list_of((rlp.split_list(response, 3)[0], *[rlp.EMPTY_LIST] * lists))

    return lie


@pytest.mark.parametrize("count", [0, 5, 20, 45, 60])
def test_the_state_of_another_block_replaces_the_first(store: Store, chain: Chain, later: Chain, count: int) -> None:
    with pytest.raises(StateGone):
        fetch(store, root_of(chain), StateServer(chain.store, 900, until(count)))
    fetch(store, root_of(later), StateServer(later.store, 900))
    check(store, later)


def test_only_differences_are_fetched_after_a_change_of_the_state(store: Store, chain: Chain, later: Chain) -> None:
    fetch(store, root_of(chain), StateServer(chain.store, 900))
    liar = StateServer(later.store, 900, altered(Code.GET_TRIE_NODES))
    server = StateServer(later.store, 100_000)
    fetch(store, root_of(later), liar, server)
    assert liar.reason is DisconnectReason.BREACH
    assert server.answered < 20
    check(store, later)


def test_an_interrupted_download_continues(store: Store, chain: Chain) -> None:
    requests = 0
    for count in (3, 10, 30, 30):
        server = StateServer(chain.store, 900, until(count))
        with pytest.raises(StateGone):
            fetch(store, root_of(chain), server)
        requests += server.answered
    server = StateServer(chain.store, 900)
    fetch(store, root_of(chain), server)
    check(store, chain)


@pytest.mark.parametrize("slow_first", [True, False])
def test_a_slow_peer_gets_few_requests(store: Store, chain: Chain, slow_first: bool) -> None:
    # its responses are right, but have one account or slot each
    slow, honest = StateServer(chain.store, 1, delay_s=0.05), StateServer(chain.store, 900)
    fetch(store, root_of(chain), *((slow, honest) if slow_first else (honest, slow)))
    assert slow.is_open
    assert slow.answered < honest.answered / 3
    check(store, chain)

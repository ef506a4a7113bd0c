"""Tests synchronisation from one or many peers, honest and dishonest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.native.crypto import PrivateKey
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.eth.field_decoding import with_id
from ophion.peers.eth.messages import Code, GetHeaders, Status, decode_get, encode_new_hashes
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.versions import ETH_68, ETH_69
from ophion.peers.sync import download
from ophion.peers.sync.progress import SyncProgress
from ophion.primitives import rlp
from ophion.primitives.header import Header
from ophion.testing.bft_chain import START, sealed_blocks
from ophion.testing.eth_node import EthNode
from ophion.testing.links import PeerLink, connect
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.peers.eth.scenarios import run_loop_until, run_nodes, run_validator_nodes

KEYS = [PrivateKey(bytes([number]) * 32) for number in range(61, 91)]


async def grown(node: EthNode, blocks: int) -> None:
    """Make a chain with some transactions."""
    for nonce in range(blocks):
        if nonce % 3:
            await node.node.seal()
        else:
            await node.node.mine(legacy_transaction(DEV_KEYS[1], nonce // 3))


async def copied(source: EthNode, *others: EthNode) -> None:
    """Give other nodes the same chain."""
    for number in range(1, source.height + 1):
        raw = source.chain.store.block(source.chain.store.canonical_hash(number) or b"")
        assert raw is not None
        for other in others:
            await other.take(iter([raw]))


def reason(wire: PeerLink) -> DisconnectReason | None:
    return None if wire.ended is None else wire.ended[0]


def count(wire: PeerLink, code: Code) -> int:
    return sum(sent == code for sent in wire.codes())


def test_a_chain_is_synchronised_completely(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        await grown(one, 700)
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(3)
        assert other.chain.tip.header.hash == one.chain.tip.header.hash
        assert other.chain.tip.total_difficulty == one.chain.tip.total_difficulty
        assert other.sync.is_in_sync()
        assert other.sync.status() is None
        assert reason(there) is None
        assert other.chain.store.check(10) == []
        figures = other.sync.figures
        went = {("headers", "added"), ("headers", "removed"), ("blocks", "added"), ("blocks", "removed")}
        assert {key: figures.processed[key] for key in went} == dict.fromkeys(went, 700)
        assert figures.processed["bodies", "added"] == 234, "one block in three has transactions"
        assert {name for name, durations in figures.tasks.items() if sum(durations.counts)} >= {
            *("ancestor", "headers", "bodies", "import")
        }
        assert not figures.restarts

    run_nodes(tmp_path, 2, scenario)


@pytest.mark.parametrize("protocol", ["ibft2", "qbft"])
def test_bft_chains_are_synchronised_in_both_versions_of_eth(tmp_path: Path, protocol: str) -> None:
    async def scenario(one: EthNode, other: EthNode, third: EthNode) -> None:
        await one.take(raw for _, raw in sealed_blocks(protocol, 4, 300))
        connect(one.eth, other.eth, (KEYS[0], KEYS[1]), offers=[68])
        connect(one.eth, third.eth, (KEYS[0], KEYS[2]), offers=[69])
        await asyncio.sleep(3)
        assert (other.height, third.height) == (300, 300)

    run_validator_nodes(tmp_path, 3, scenario, protocol)


def test_a_lighter_chain_is_left_for_a_heavier_one(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        for _ in range(50):
            await one.node.seal()
        await copied(one, other)
        for _ in range(250):
            await other.node.seal(2.0)
        for _ in range(40):
            await one.node.seal(3.0)
        connect(one.eth, other.eth)
        await asyncio.sleep(5)
        assert one.chain.head.hash == other.chain.head.hash
        assert one.height == 300

    run_nodes(tmp_path, 2, scenario)


def test_headers_and_bodies_come_from_all_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "SKELETON_FROM", 300)

    async def scenario(one: EthNode, two: EthNode, three: EthNode, learner: EthNode) -> None:
        await grown(one, 900)
        await copied(one, two, three)
        wires = [connect(node.eth, learner.eth, (KEYS[at], KEYS[9])) for at, node in enumerate((one, two, three))]
        await asyncio.sleep(5)
        assert learner.chain.head.hash == one.chain.head.hash
        assert count(wires[0][0], Code.BLOCK_HEADERS) > count(wires[1][0], Code.BLOCK_HEADERS) > 1
        assert sum(count(here, Code.BLOCK_BODIES) for here, _ in wires[1:]) > 0

    run_nodes(tmp_path, 4, scenario)


def test_one_peer_that_stalls_does_not_stop_the_others(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode, learner: EthNode) -> None:
        await grown(one, 400)
        await copied(one, two)
        stalling, _ = connect(one.eth, learner.eth, (KEYS[0], KEYS[9]))
        stalling.intercept = lambda code, payload: None if code == Code.BLOCK_BODIES else payload
        connect(two.eth, learner.eth, (KEYS[1], KEYS[9]))
        await asyncio.sleep(30)
        assert learner.chain.head.hash == one.chain.head.hash

    run_nodes(tmp_path, 3, scenario)


def test_a_target_that_stops_answering_is_followed_by_another(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode, learner: EthNode) -> None:
        await grown(one, 30)
        await copied(one, two)
        await two.node.seal()
        silent, at_learner = connect(two.eth, learner.eth, (KEYS[1], KEYS[9]))
        silent.intercept = lambda code, payload: payload if count(silent, Code.BLOCK_HEADERS) == 1 else None
        connect(one.eth, learner.eth, (KEYS[0], KEYS[9]))
        await asyncio.sleep(20)
        assert learner.height == 30
        await asyncio.sleep(60)
        assert reason(at_learner) is DisconnectReason.TIMEOUT

    run_nodes(tmp_path, 3, scenario)


def test_what_is_imported_stays_when_the_target_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_BATCH_BLOCKS", 10)
    monkeypatch.setattr(download, "MAX_HEADERS", 200)

    async def scenario(one: EthNode, two: EthNode, learner: EthNode) -> None:
        await grown(one, 500)
        await copied(one, two)
        here, there = connect(one.eth, learner.eth, (KEYS[0], KEYS[9]))
        await run_loop_until(lambda: learner.height >= 100)
        assert not learner.sync.is_in_sync()
        here.close()
        there.close()
        await asyncio.sleep(1)
        reached = learner.height
        assert 100 <= reached < 500
        assert learner.sync.is_in_sync(), "without peers a node is in sync"
        connect(two.eth, learner.eth, (KEYS[1], KEYS[9]))
        await asyncio.sleep(5)
        assert learner.height == 500

    run_nodes(tmp_path, 3, scenario)


def test_a_node_far_behind_reports_it_while_it_catches_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_BATCH_BLOCKS", 10)

    async def scenario(one: EthNode, learner: EthNode) -> None:
        await grown(one, 100)
        changes: list[bool] = []
        learner.sync.changed.listen(changes.append)
        seen: set[SyncProgress] = set()
        connect(one.eth, learner.eth)
        while learner.height < 100:
            status = learner.sync.status()
            if status is not None:
                seen.add(status)
            await asyncio.sleep(0)
        assert changes == [False, True]
        assert {(status.starting, status.highest) for status in seen} == {(0, 100)}
        assert len({status.current for status in seen}) > 5
        assert learner.sync.status() is None

    run_nodes(tmp_path, 2, scenario)


# --- dishonest peers ----------------------------------------------------------------------------


def lying(answer: Callable[[list[bytes]], list[bytes]], code: Code) -> Callable[[int, bytes], bytes | None]:
    """Return an interceptor that changes the items of one kind of response."""

    def intercept(sent: int, payload: bytes) -> bytes | None:
        if sent != code:
            return payload
        encoded_id, body = rlp.split_list(payload, 1024)
        return rlp.list_of([encoded_id, rlp.list_of(answer(rlp.split_list(body, 1024)))])

    return intercept


def test_a_claim_of_a_million_blocks_does_not_end_in_sync(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        def claim(code: int, payload: bytes) -> bytes | None:
            if code != Code.STATUS:
                return payload
            status: Status = ETH_68.read_status(payload)
            return ETH_68.write_status(replace(status, total_difficulty=2**60))

        _, there = connect(other.eth, one.eth, intercept=claim)
        changes: list[bool] = []
        other.sync.changed.listen(changes.append)
        for _ in range(100):
            assert other.sync.is_in_sync()
            await asyncio.sleep(0.1)
        there.other.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes([(b"\x01" * 32, 10**6)]))  # type: ignore[union-attr]
        for _ in range(300):
            assert other.sync.is_in_sync()
            await asyncio.sleep(0.1)
        assert changes == []
        assert other.sync.status() is None, "it did not deliver the claimed blocks"

    run_nodes(tmp_path, 2, scenario)


@pytest.mark.parametrize("engine", ["pow", "qbft"])
def test_a_claimed_height_without_blocks_is_ignored(tmp_path: Path, engine: str) -> None:
    """Readiness and eth_syncing use claimed heights, so a false claim could remove every node from its load
    balancer.
    """

    async def scenario(one: EthNode, two: EthNode, other: EthNode) -> None:
        await copied_chain(one, two, other)
        connect(other.eth, two.eth, (KEYS[9], KEYS[1]))
        _, there = connect(other.eth, one.eth, (KEYS[9], KEYS[0]))
        await asyncio.sleep(1)
        at_other = there.other
        assert at_other is not None
        at_other.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes([(b"\x01" * 32, 10**9)]))
        await asyncio.sleep(5)
        for _ in range(300):
            assert other.sync.status() is None
            await asyncio.sleep(0.1)

    async def copied_chain(one: EthNode, *others: EthNode) -> None:
        if engine == "pow":
            await grown(one, 5)
            await copied(one, *others)
        else:
            for node in (one, *others):
                await node.take(raw for _, raw in sealed_blocks(engine, 4, 5))

    if engine == "pow":
        run_nodes(tmp_path, 3, scenario)
    else:
        run_validator_nodes(tmp_path, 3, scenario, engine)


def test_unknown_peers_with_false_claims_do_not_stop_synchronisation(tmp_path: Path) -> None:
    """New peers connect all the time. They claim a long chain, but serve only blocks that the synchronising node
    already has.
    """

    async def scenario(one: EthNode, empty: EthNode, learner: EthNode) -> None:
        await grown(one, 100)
        unknown_keys = iter(KEYS[10:])

        async def promising() -> None:
            def claim(code: int, payload: bytes) -> bytes | None:
                if code == Code.STATUS:
                    return ETH_68.write_status(replace(ETH_68.read_status(payload), total_difficulty=2**60))
                return payload if count(there, Code.BLOCK_HEADERS) <= 1 else None

            here, there = connect(learner.eth, empty.eth, (KEYS[9], next(unknown_keys)), intercept=claim)
            await asyncio.sleep(0.1)
            here.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes([(b"\x01" * 32, 10**6)]))

        for _ in range(3):
            await promising()
        connect(one.eth, learner.eth, (KEYS[0], KEYS[9]))
        for _ in range(16):
            await asyncio.sleep(5)
            await promising()
        assert learner.height == 100

    run_nodes(tmp_path, 3, scenario)


def test_a_helper_with_a_partial_stretch_is_not_blamed_on_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "SKELETON_FROM", 300)

    async def scenario(one: EthNode, two: EthNode, three: EthNode, learner: EthNode) -> None:
        await grown(one, 900)
        await copied(one, two, three)
        await one.node.seal()
        _, at_target = connect(one.eth, learner.eth, (KEYS[0], KEYS[9]))
        forging, at_forger = connect(two.eth, learner.eth, (KEYS[1], KEYS[9]))

        def forged(items: list[bytes]) -> list[bytes]:
            if len(items) < 100:
                return items
            return [replace(Header.decode(items[0]), state_root=bytes(32)).encode()]

        forging.intercept = lying(forged, Code.BLOCK_HEADERS)
        short, at_short = connect(three.eth, learner.eth, (KEYS[2], KEYS[9]))
        short.intercept = lying(lambda items: items[:40], Code.BLOCK_HEADERS)
        await asyncio.sleep(1)
        syncing = asyncio.create_task(learner.sync.run(lambda: None))
        await asyncio.sleep(30)
        syncing.cancel()
        assert learner.chain.head.hash == one.chain.head.hash
        assert reason(at_target) is None
        assert reason(at_short) is None, "five partial responses complete a stretch"
        assert count(short, Code.BLOCK_HEADERS) > 5
        assert count(at_forger, Code.GET_BLOCK_HEADERS) > 1

    run_nodes(tmp_path, 4, scenario, synchronises=False)


def test_headers_that_never_link_are_a_breach(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode, learner: EthNode) -> None:
        await grown(one, 60)
        await copied(one, two)
        await one.node.seal()
        here, there = connect(one.eth, learner.eth, (KEYS[0], KEYS[9]))

        def swap(items: list[bytes]) -> list[bytes]:
            return [items[0], *reversed(items[1:])] if len(items) > 20 else items

        here.intercept = lying(swap, Code.BLOCK_HEADERS)
        connect(two.eth, learner.eth, (KEYS[1], KEYS[9]))
        await asyncio.sleep(20)
        assert reason(there) is DisconnectReason.BREACH
        assert learner.height == 60
        assert sum(learner.sync.figures.restarts.values()) >= 1

    run_nodes(tmp_path, 3, scenario)


def test_stretches_that_do_not_continue_each_other_are_a_breach(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode, learner: EthNode) -> None:
        await one.take(raw for _, raw in sealed_blocks("ibft2", 4, 400))
        await other.take(raw for _, raw in sealed_blocks("ibft2", 4, 400, start=START + 1))
        here, there = connect(one.eth, learner.eth)

        def from_another_chain(code: int, payload: bytes) -> bytes | None:
            if code != Code.BLOCK_HEADERS:
                return payload
            request_id, _ = with_id(payload, "headers")
            asked = [
                decode_get(sent, Code.GET_BLOCK_HEADERS) for kind, sent in there.sent if kind == Code.GET_BLOCK_HEADERS
            ]
            request = next(GetHeaders.decode(body) for number, body in asked if number == request_id)
            if isinstance(request.start, bytes) or request.start < 150:
                return payload
            return rlp.list_of([rlp.encode_int(request_id), other.eth._answers.headers(request)])

        here.intercept = from_another_chain
        await asyncio.sleep(30)
        assert reason(there) is DisconnectReason.BREACH
        assert learner.height <= 192

    run_validator_nodes(tmp_path, 3, scenario)


def test_wrong_bodies_are_fetched_elsewhere(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode, learner: EthNode) -> None:
        await grown(one, 200)
        await copied(one, two)
        wrong, _ = connect(two.eth, learner.eth, (KEYS[1], KEYS[9]))
        wrong.intercept = lying(lambda items: [rlp.encode([[], []])] * len(items), Code.BLOCK_BODIES)
        _, there = connect(one.eth, learner.eth, (KEYS[0], KEYS[9]))
        await asyncio.sleep(30)
        assert learner.height == 200
        assert reason(there) is None

    run_nodes(tmp_path, 3, scenario)


def test_a_target_without_bodies_is_disconnected(tmp_path: Path) -> None:
    async def scenario(one: EthNode, learner: EthNode) -> None:
        await grown(one, 50)
        here, there = connect(one.eth, learner.eth)
        here.intercept = lying(lambda items: [], Code.BLOCK_BODIES)
        await asyncio.sleep(60)
        assert reason(there) is DisconnectReason.USELESS
        assert learner.height == 0

    run_nodes(tmp_path, 2, scenario)


def test_a_target_without_old_bodies_is_not_blamed(tmp_path: Path) -> None:
    """A peer that has started by snap synchronisation lacks old bodies for some time. Another peer has them."""

    async def scenario(one: EthNode, two: EthNode, learner: EthNode) -> None:
        await grown(one, 300)
        await copied(one, two)
        here, there = connect(one.eth, learner.eth)
        here.intercept = lying(lambda items: [], Code.BLOCK_BODIES)
        await asyncio.sleep(120)
        assert reason(there) is None
        assert learner.height == 0
        connect(two.eth, learner.eth, (KEYS[2], KEYS[3]))
        await asyncio.sleep(60)
        assert learner.height == 300

    run_nodes(tmp_path, 3, scenario)


def test_blocks_without_a_quorum_of_seals_disconnect_the_target(tmp_path: Path) -> None:
    async def scenario(one: EthNode, learner: EthNode) -> None:
        good = [raw for _, raw in sealed_blocks("ibft2", 4, 50)]
        bad = [header for header, _ in sealed_blocks("ibft2", 4, 100, sealers=2)][50:]
        more = [raw for _, raw in sealed_blocks("ibft2", 4, 100)]
        assert more[:50] == good
        await one.take(iter(more))
        here, there = connect(one.eth, learner.eth)
        unsealed = {header.number: header.header.encode() for header in bad}

        def answer(items: list[bytes]) -> list[bytes]:
            numbers = [int.from_bytes(rlp.decode_list(item)[8], "big") for item in items]  # type: ignore[arg-type]
            return [unsealed.get(number, item) for number, item in zip(numbers, items, strict=True)]

        here.intercept = lying(answer, Code.BLOCK_HEADERS)
        await asyncio.sleep(5)
        assert reason(there) is DisconnectReason.BREACH
        assert learner.height == 50, "the blocks before are valid"

    run_validator_nodes(tmp_path, 2, scenario)


def test_a_chain_that_differs_from_final_blocks_is_refused(tmp_path: Path) -> None:
    async def scenario(one: EthNode, learner: EthNode) -> None:
        await learner.take(raw for _, raw in sealed_blocks("ibft2", 4, 20))
        await one.take(raw for _, raw in sealed_blocks("ibft2", 4, 100, start=START + 1))
        _, there = connect(one.eth, learner.eth)
        await asyncio.sleep(5)
        assert reason(there) is DisconnectReason.BREACH
        assert learner.height == 20

    run_validator_nodes(tmp_path, 2, scenario)


# --- small gaps ---------------------------------------------------------------------------------


def test_a_small_gap_is_left_to_gossip_for_a_moment(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        await grown(one, 3)
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(0.5)
        assert other.height == 0
        await asyncio.sleep(0.5)
        assert other.height == 3
        assert reason(there) is None

    run_nodes(tmp_path, 2, scenario)


def test_a_validator_that_hears_of_later_blocks_catches_up_at_once(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        blocks = [raw for _, raw in sealed_blocks("ibft2", 4, 8)]
        here, there = connect(one.eth, other.eth, (KEYS[0], KEYS[1]))
        await asyncio.sleep(1)
        here.intercept = lambda code, payload: payload if code == Code.BLOCK_HEADERS else None
        await one.take(iter(blocks))
        assert isinstance(there.attached, EthPeer)
        assert there.attached.version is ETH_69
        other.sync.catch_up(KEYS[0].address, 8)
        await asyncio.sleep(0.01)
        assert other.height == 8
        other.sync.catch_up(KEYS[5].address, 99)
        other.sync.catch_up(None, 99)

    run_validator_nodes(tmp_path, 2, scenario)


def test_the_head_moves_while_a_long_synchronisation_runs(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        await grown(one, 300)
        connect(one.eth, other.eth)
        for _ in range(40):
            await one.node.seal()
            await asyncio.sleep(0.001)
        await asyncio.sleep(5)
        assert other.height == 340

    run_nodes(tmp_path, 2, scenario)

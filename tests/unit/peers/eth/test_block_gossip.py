"""Tests block gossip."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from ophion.chain.block import decode_block, encode_block
from ophion.native.crypto import PrivateKey
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.eth.block_fetcher import MAX_FETCHES, MAX_PASSED_OVER, MAX_TRACKED
from ophion.peers.eth.held_blocks import MAX_HELD, MAX_HELD_BYTES, MAX_UNKNOWN_BYTES
from ophion.peers.eth.messages import Code, decode_new_hashes, encode_new_block, encode_new_hashes
from ophion.peers.eth.protocol import REANNOUNCE_S
from ophion.peers.peer import Peer
from ophion.primitives import rlp
from ophion.testing.bft_chain import KEYS as VALIDATORS
from ophion.testing.bft_chain import sealed_blocks
from ophion.testing.eth_node import EthNode
from ophion.testing.links import PeerLink, connect
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.peers.eth.scenarios import run_nodes, run_validator_nodes

KEYS = [PrivateKey(bytes([number]) * 32) for number in range(61, 91)]


def gossip(wire: PeerLink) -> list[int]:
    """Return the block announcements that one end of the connection has sent."""
    return [code for code in wire.codes() if code in (Code.NEW_BLOCK, Code.NEW_BLOCK_HASHES)]


def full(node: EthNode, hash: bytes) -> bytes:
    """Encode a stored block as a NewBlock message."""
    raw = node.chain.store.block(hash)
    assert raw is not None
    return encode_new_block(raw, node.chain.total_difficulty(hash) or 0)


def test_a_new_block_reaches_each_peer_once(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode, three: EthNode) -> None:
        wires = [
            connect(one.eth, two.eth, (KEYS[0], KEYS[1])),
            connect(two.eth, three.eth, (KEYS[1], KEYS[2])),
        ]
        await asyncio.sleep(1)
        block, _ = await one.node.mine(legacy_transaction(DEV_KEYS[1], 0))
        await asyncio.sleep(2)
        assert [node.chain.head.hash for node in (two, three)] == [block.hash, block.hash]
        assert gossip(wires[0][0]) == gossip(wires[1][0]) == [Code.NEW_BLOCK]
        assert gossip(wires[0][1]) == gossip(wires[1][1]) == [], "a block is not sent back"
        assert not any(code == Code.GET_BLOCK_BODIES for wire in wires for code in wire[1].codes())

    run_nodes(tmp_path, 3, scenario)


def test_a_block_produced_during_the_status_exchange_reaches_the_peer(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode) -> None:
        near, far = connect(one.eth, two.eth, (KEYS[0], KEYS[1]))
        near.is_open = False  # the Status message of the other node has not arrived yet
        block, _ = await one.node.mine(legacy_transaction(DEV_KEYS[1], 0))
        near.is_open = True
        near.deliver(*far.sent[0])
        await asyncio.sleep(2)
        assert two.chain.head.hash == block.hash

    run_nodes(tmp_path, 2, scenario)


def test_a_peer_that_floods_block_announcements_is_disconnected(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        most = MAX_TRACKED + MAX_PASSED_OVER
        hashes = [(number.to_bytes(32, "big"), 1) for number in range(most + 1)]
        there.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes(hashes[:most]))
        assert there.ended is None
        there.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes(hashes[most:]))
        assert there.ended == (DisconnectReason.USELESS, "too many block announcements")
        fetcher = other.eth.blocks._fetcher
        assert (len(fetcher), len(fetcher._announcers)) == (0, 0)

    run_nodes(tmp_path, 2, scenario)


def test_a_block_announced_by_hash_is_fetched_after_a_moment(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        here.intercept = lambda code, payload: None if code == Code.NEW_BLOCK else payload
        block, _ = await one.node.mine(legacy_transaction(DEV_KEYS[1], 0))
        asked = len(there.sent)
        there.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes([(block.hash, 1)]))
        await asyncio.sleep(0.4)
        assert len(there.sent) == asked, "the block may still arrive in full"
        await asyncio.sleep(0.2)
        assert there.codes()[asked:] == [Code.GET_BLOCK_HEADERS, Code.GET_BLOCK_BODIES]
        assert other.chain.head.hash == block.hash

    run_nodes(tmp_path, 2, scenario)


def test_a_block_that_came_in_full_is_not_fetched(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        asked = len(there.sent)
        block = await one.node.seal()
        there.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes([(block.hash, 1)]))
        await asyncio.sleep(2)
        assert other.height == 1
        assert there.codes()[asked:] == []

    run_nodes(tmp_path, 2, scenario)


def test_the_next_announcer_is_asked_when_the_first_does_not_deliver(tmp_path: Path) -> None:
    async def scenario(maker: EthNode, liar: EthNode, other: EthNode) -> None:
        _, from_liar = connect(liar.eth, other.eth, (KEYS[0], KEYS[1]))
        here, from_maker = connect(maker.eth, other.eth, (KEYS[2], KEYS[1]))
        here.intercept = lambda code, payload: None if code == Code.NEW_BLOCK else payload
        await asyncio.sleep(0.1)
        block = await maker.node.seal()
        announcement = encode_new_hashes([(block.hash, 1)])
        from_liar.deliver(Code.NEW_BLOCK_HASHES, announcement)
        from_maker.deliver(Code.NEW_BLOCK_HASHES, announcement)
        await asyncio.sleep(1)
        assert other.height == 1
        assert from_liar.ended is None

    run_nodes(tmp_path, 3, scenario)


def test_missing_parents_are_fetched(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        here.intercept = lambda code, payload: None if code == Code.NEW_BLOCK else payload
        blocks = [(await one.node.mine(legacy_transaction(DEV_KEYS[1], nonce)))[0] for nonce in range(4)]
        there.deliver(Code.NEW_BLOCK, full(one, blocks[-1].hash))
        await asyncio.sleep(0.5)
        assert other.height == 4, "before synchronisation would have begun"

    run_nodes(tmp_path, 2, scenario)


def test_blocks_in_the_wrong_order_are_imported_in_order(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        here.intercept = lambda code, payload: None
        blocks = [await one.node.seal() for _ in range(5)]
        for block in reversed(blocks):
            there.deliver(Code.NEW_BLOCK, full(one, block.hash))
        await asyncio.sleep(0.1)
        assert other.height == 5
        assert len(other.eth.blocks._held) == 0
        assert other.eth.blocks._orphans == {}

    run_nodes(tmp_path, 2, scenario)


def test_old_and_known_blocks_are_not_relayed(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode, three: EthNode) -> None:
        blocks = [await one.node.seal() for _ in range(20)]
        _, at_two = connect(one.eth, two.eth, (KEYS[0], KEYS[1]))
        to_three, _ = connect(two.eth, three.eth, (KEYS[1], KEYS[2]))
        await asyncio.sleep(5)
        assert three.height == 20
        sent = len(to_three.sent)
        for number in (0, 5, 12, 19):
            at_two.deliver(Code.NEW_BLOCK, full(one, blocks[number].hash))
            at_two.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes([(blocks[number].hash, number + 1)]))
        await asyncio.sleep(2)
        announced = {payload for code, payload in to_three.sent[sent:] if code != Code.NEW_BLOCK}
        assert announced <= {encode_new_hashes([(blocks[19].hash, 20)])}, "the head alone is announced again"
        assert Code.NEW_BLOCK not in to_three.codes()[sent:]
        assert at_two.ended is None

    run_nodes(tmp_path, 3, scenario)


def test_an_invalid_header_disconnects_the_peer_and_is_not_relayed(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode, three: EthNode) -> None:
        _, at_two = connect(one.eth, two.eth, (KEYS[0], KEYS[1]))
        to_three, _ = connect(two.eth, three.eth, (KEYS[1], KEYS[2]))
        await asyncio.sleep(1)
        built = await one.node.core.assembler.assemble(1.0)
        bad = replace(built.header, gas_limit=built.header.gas_limit * 2)
        at_two.deliver(Code.NEW_BLOCK, encode_new_block(built.body.encode_block(bad.encode()), 10**6))
        await asyncio.sleep(1)
        assert at_two.ended is not None
        assert at_two.ended[0] is DisconnectReason.BREACH
        assert gossip(to_three) == []
        assert two.height == 0

    run_nodes(tmp_path, 3, scenario)


def test_a_body_of_another_block_is_ignored(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        here.intercept = lambda code, payload: None if code == Code.NEW_BLOCK else payload
        block, _ = await one.node.mine(legacy_transaction(DEV_KEYS[1], 0))
        wrong = rlp.encode([rlp.decode(block.header.encode()), [], []])
        there.deliver(Code.NEW_BLOCK, encode_new_block(wrong, 10**6))
        await asyncio.sleep(0.1)
        assert (other.height, there.ended) == (0, None)
        there.deliver(Code.NEW_BLOCK, full(one, block.hash))
        await asyncio.sleep(0.1)
        assert other.height == 1, "the right body is accepted afterwards"

    run_nodes(tmp_path, 2, scenario)


def test_a_block_whose_execution_fails_does_not_disconnect_the_peer(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        built = await one.node.core.assembler.assemble(1.0)
        bad = replace(built.header, state_root=bytes(32))
        there.deliver(Code.NEW_BLOCK, encode_new_block(built.body.encode_block(bad.encode()), 10**6))
        await asyncio.sleep(1)
        assert (other.height, there.ended) == (0, None)
        assert len(other.node.core.importer.bad_blocks.recent()) == 1

    run_nodes(tmp_path, 2, scenario)


def test_a_block_from_the_future_waits_for_its_timestamp(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode, three: EthNode) -> None:
        here, there = connect(one.eth, two.eth, (KEYS[0], KEYS[1]))
        to_three, _ = connect(two.eth, three.eth, (KEYS[1], KEYS[2]))
        await asyncio.sleep(1)
        ((_, early),) = sealed_blocks("ibft2", 4, 1, start=int(one.node.clock.now()) + 24)
        there.deliver(Code.NEW_BLOCK, encode_new_block(early, 2))
        await asyncio.sleep(5)
        assert (two.height, gossip(to_three), there.ended) == (0, [], None)
        await asyncio.sleep(25)
        assert (two.height, three.height) == (1, 1)
        assert here.ended is None

    run_validator_nodes(tmp_path, 3, scenario)


def test_impossible_blocks_end_the_connection(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        built = await one.node.core.assembler.assemble(1.0)
        header = built.header
        for bad, weight in (
            (replace(header, difficulty=2**81), 2**90),
            (replace(header, extra_data=bytes(200_000)), 10**6),
            (header, 0),
        ):
            _, there = connect(one.eth, other.eth)
            await asyncio.sleep(0.1)
            there.deliver(Code.NEW_BLOCK, encode_new_block(built.body.encode_block(bad.encode()), weight))
            assert there.ended is not None
            assert there.ended[0] is DisconnectReason.BREACH
            await asyncio.sleep(0.1)

    run_nodes(tmp_path, 2, scenario)


def test_held_blocks_of_a_peer_are_bounded(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        there.intercept = lambda code, payload: None
        built = await one.node.core.assembler.assemble(1.0)
        for number in range(2 * MAX_HELD):
            orphan = replace(built.header, parent_hash=bytes([number]) * 32, number=5)
            there.deliver(Code.NEW_BLOCK, encode_new_block(built.body.encode_block(orphan.encode()), 10**6))
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        assert sum(map(len, other.eth.blocks._orphans.values())) == MAX_HELD
        there.close()
        assert other.eth.blocks._orphans == {}
        assert len(other.eth.blocks._held) == 0

    run_nodes(tmp_path, 2, scenario)


def test_an_orphan_of_a_disconnected_peer_is_not_held(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        built = await one.node.core.assembler.assemble(1.0)
        for number in range(3):
            _, there = connect(one.eth, other.eth)
            await asyncio.sleep(1)
            there.intercept = lambda code, payload: None
            orphan = replace(built.header, parent_hash=bytes([number + 1]) * 32, number=5)
            there.deliver(Code.NEW_BLOCK, encode_new_block(built.body.encode_block(orphan.encode()), 10**6))
            there.close()
            await asyncio.sleep(1)
        blocks = other.eth.blocks
        assert (blocks._orphans, len(blocks._held)) == ({}, 0)
        assert (len(blocks._fetcher), blocks._fetcher._announcers) == (0, {})

    run_nodes(tmp_path, 2, scenario)


def test_a_fetched_orphan_is_dropped_with_its_sender(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        here.intercept = lambda code, payload: None if code == Code.NEW_BLOCK else payload
        blocks = [(await one.node.mine(legacy_transaction(DEV_KEYS[1], nonce)))[0] for nonce in range(3)]
        received = there.deliver

        def answer_and_hang_up(code: int, payload: bytes) -> None:
            received(code, payload)
            if code == Code.BLOCK_BODIES:
                there.close()

        there.deliver = answer_and_hang_up  # type: ignore[method-assign]
        there.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes([(blocks[-1].hash, 3)]))
        await asyncio.sleep(2)
        assert not there.is_open
        gossip = other.eth.blocks
        assert (gossip._orphans, len(gossip._held)) == ({}, 0)
        assert (len(gossip._fetcher), gossip._fetcher._announcers) == (0, {})

    run_nodes(tmp_path, 2, scenario, synchronises=False)


def test_tracked_announcements_are_bounded(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        for start in range(0, 20_000, 1000):
            blocks = [(number.to_bytes(32, "big"), 1) for number in range(start, start + 1000)]
            there.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes(blocks))
        assert len(other.eth.blocks._fetcher) <= 256
        await asyncio.sleep(10)
        assert len(other.eth.blocks._fetcher) == 0
        assert there.ended is not None, "it announces blocks that it does not have"

    run_nodes(tmp_path, 2, scenario)


def test_validators_get_the_hash_and_other_peers_the_block(tmp_path: Path) -> None:
    async def scenario(validator: EthNode, colleague: EthNode, follower: EthNode) -> None:
        to_colleague, _ = connect(validator.eth, colleague.eth, (VALIDATORS[0], VALIDATORS[1]))
        to_follower, _ = connect(validator.eth, follower.eth, (VALIDATORS[0], KEYS[5]))
        await asyncio.sleep(1)
        blocks = [raw for _, raw in sealed_blocks("ibft2", 4, 2)]
        await validator.take(iter(blocks[:1]))
        await asyncio.sleep(0.1)
        assert gossip(to_colleague) == [Code.NEW_BLOCK_HASHES]
        assert gossip(to_follower) == [Code.NEW_BLOCK]
        assert (colleague.height, follower.height) == (0, 1)
        await asyncio.sleep(1)
        assert colleague.height == 1, "it has not decided the block itself and fetches it"

    run_validator_nodes(tmp_path, 3, scenario)


def test_the_same_block_with_other_seals_is_the_same_block(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        ((_, raw),) = sealed_blocks("ibft2", 4, 1)
        ((_, more_seals),) = sealed_blocks("ibft2", 4, 1, sealers=4)
        assert raw != more_seals
        for block in (raw, more_seals):
            there.deliver(Code.NEW_BLOCK, encode_new_block(block, 2))
            await asyncio.sleep(0.1)
        assert other.chain.store.block(other.chain.head.hash) == raw
        assert there.ended is None

    run_validator_nodes(tmp_path, 2, scenario)


def test_the_head_is_announced_after_synchronisation(tmp_path: Path) -> None:
    async def scenario(one: EthNode, middle: EthNode, last: EthNode) -> None:
        for _ in range(40):
            await one.node.seal()
        to_last, _ = connect(middle.eth, last.eth, (KEYS[1], KEYS[2]))
        await asyncio.sleep(1)
        connect(one.eth, middle.eth, (KEYS[0], KEYS[1]))
        await asyncio.sleep(10)
        assert (middle.height, last.height) == (40, 40)
        announced = [decode_new_hashes(payload) for code, payload in to_last.sent if code == Code.NEW_BLOCK_HASHES]
        assert announced[0] == [(one.chain.head.hash, 40)]

    run_nodes(tmp_path, 3, scenario)


def test_a_reorganisation_returns_transactions_to_the_pool(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        lost = legacy_transaction(DEV_KEYS[2], 0)
        _, hashes = await other.node.mine(lost)
        for _ in range(3):
            await one.node.seal()
        connect(one.eth, other.eth)
        await asyncio.sleep(5)
        assert other.chain.head.hash == one.chain.head.hash
        assert other.pool.get(hashes[0]) is not None
        await asyncio.sleep(1)
        assert one.pool.get(hashes[0]) is not None, "and is relayed from there"

    run_nodes(tmp_path, 2, scenario)


def test_a_branch_that_is_known_in_part_becomes_canonical_again(tmp_path: Path) -> None:
    async def scenario(one: EthNode) -> None:
        header, _ = await one.node.mine(legacy_transaction(DEV_KEYS[1], 0))
        raw = one.chain.store.block(header.hash)
        assert raw is not None
        assert encode_block(decode_block(raw, one.chain.engine)) == raw

    run_nodes(tmp_path, 1, scenario)


def test_announcers_that_deliver_nothing_delay_only_themselves(tmp_path: Path) -> None:
    async def scenario(maker: EthNode, liar: EthNode, other: EthNode) -> None:
        _, from_maker = connect(maker.eth, other.eth, (KEYS[0], KEYS[1]))
        lines = [connect(liar.eth, other.eth, (key, KEYS[1])) for key in KEYS[2:12]]
        for near, _ in lines:
            near.intercept = lambda code, payload: None
        await asyncio.sleep(1)
        for count, (_, far) in enumerate(lines):
            hashes = [((1000 * count + number).to_bytes(32, "big"), 1) for number in range(200)]
            far.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes(hashes))
        await asyncio.sleep(1)
        asked = [far.codes().count(Code.GET_BLOCK_HEADERS) for _, far in lines]
        assert max(asked) <= MAX_FETCHES, "each announcer has a few fetches under way"
        assert len(other.eth._tasks) <= 2, "a fetch that waits holds no block task"
        block = await maker.node.seal()
        await asyncio.sleep(0.1)
        assert other.chain.head.hash == block.hash
        assert from_maker.ended is None

    run_nodes(tmp_path, 3, scenario, synchronises=False)


def test_a_member_is_asked_at_once_while_an_unknown_announcer_does_not_answer(tmp_path: Path) -> None:
    async def scenario(maker: EthNode, liar: EthNode, other: EthNode) -> None:
        near, far = connect(liar.eth, other.eth, (KEYS[2], KEYS[1]))
        here, there = connect(maker.eth, other.eth, (KEYS[0], KEYS[1]))
        near.intercept = lambda code, payload: None
        here.intercept = lambda code, payload: None if code == Code.NEW_BLOCK else payload
        await asyncio.sleep(1)
        for peer in other.eth.peers:
            peer.peer.is_static = peer.peer.id == KEYS[0].public_key
        block = await maker.node.seal()
        far.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes([(block.hash, 1)]))
        await asyncio.sleep(0.6)
        assert other.height == 0, "the unknown peer is being asked"
        there.deliver(Code.NEW_BLOCK_HASHES, encode_new_hashes([(block.hash, 1)]))
        await asyncio.sleep(0.1)
        assert other.height == 1

    run_nodes(tmp_path, 3, scenario, synchronises=False)


def test_a_full_block_that_is_dropped_is_synchronised(tmp_path: Path) -> None:
    async def scenario(maker: EthNode, other: EthNode) -> None:
        here, there = connect(maker.eth, other.eth)
        await asyncio.sleep(1)
        here.intercept = lambda code, payload: None if code == Code.NEW_BLOCK_HASHES else payload
        other.eth._tasks._max_per_peer = 0
        block = await maker.node.seal()
        await asyncio.sleep(0.1)
        (peer,) = other.eth.peers
        assert (other.eth.blocks.dropped, other.height, peer.head.hash) == (1, 0, block.hash)
        await asyncio.sleep(5)
        assert other.height == 1
        assert there.ended is None

    run_nodes(tmp_path, 2, scenario)


def test_a_head_that_does_not_move_is_announced_again(tmp_path: Path) -> None:
    async def scenario(maker: EthNode, other: EthNode) -> None:
        here, _ = connect(maker.eth, other.eth)
        await asyncio.sleep(1)
        here.intercept = lambda code, payload: None
        block = await maker.node.seal()
        await asyncio.sleep(1)
        here.intercept = None
        assert other.height == 0
        await asyncio.sleep(2 * REANNOUNCE_S + 1)
        assert other.chain.head.hash == block.hash

    run_nodes(tmp_path, 2, scenario, synchronises=False)


def test_blocks_of_all_unknown_peers_together_are_bounded(tmp_path: Path) -> None:
    async def scenario(maker: EthNode, liar: EthNode, other: EthNode) -> None:
        connect(maker.eth, other.eth, (KEYS[0], KEYS[1]))
        for key in KEYS[2:8]:
            connect(liar.eth, other.eth, (key, KEYS[1]))
        await asyncio.sleep(1)
        blocks, peers = other.eth.blocks, list(other.eth.peers)
        peers[0].peer.is_static = True
        size = MAX_HELD_BYTES // 2
        held = [blocks._held.add(peer, bytes((index, 1)) * 16, size) for index, peer in enumerate(peers[1:])]
        assert held.count(True) == MAX_UNKNOWN_BYTES // size
        assert blocks._held.add(peers[0], bytes(32), size), "a member has its own quota"
        for hash in tuple(blocks._held._blocks):
            blocks._held.remove(hash)
        assert (blocks._held._unknown_bytes, len(blocks._held)) == (0, 0)

    run_nodes(tmp_path, 3, scenario, synchronises=False)


def test_a_full_block_of_a_member_does_not_wait_for_the_copy_of_an_unknown_peer(tmp_path: Path) -> None:
    """Jobs of unknown peers wait behind each other, so an unknown peer could otherwise delay a block by sending it
    first.
    """

    async def scenario(one: EthNode, other: EthNode, third: EthNode) -> None:
        unknown, _ = connect(one.eth, other.eth, (KEYS[0], KEYS[1]))
        member, far = connect(one.eth, third.eth, (KEYS[0], KEYS[2]))
        far.intercept = lambda code, payload: None if code in (Code.NEW_BLOCK, Code.NEW_BLOCK_HASHES) else payload
        await asyncio.sleep(1)
        by_member = one.eth.peers.by_address(KEYS[2].address)
        assert by_member is not None
        by_member.peer.is_static = True
        run, never = one.eth.lane.run, asyncio.get_running_loop().create_future()

        async def run_members(owner: Peer, work: Callable[[], object], deadline_s: float | None = None) -> object:
            if not owner.is_static:
                await never
            return await run(owner, work, deadline_s)

        one.eth.lane.run = run_members  # type: ignore[method-assign, assignment]
        block, _ = await third.node.mine(legacy_transaction(DEV_KEYS[1], 0))
        message = full(third, block.hash)
        unknown.deliver(Code.NEW_BLOCK, message)
        await asyncio.sleep(0.1)
        assert one.height == 0
        member.deliver(Code.NEW_BLOCK, message)
        await asyncio.sleep(0.1)
        assert one.chain.head.hash == block.hash
        assert not never.done()
        never.set_result(None)
        await asyncio.sleep(1)
        assert len(one.eth.blocks._held) == 0
        assert unknown.ended is None

    run_nodes(tmp_path, 3, scenario)

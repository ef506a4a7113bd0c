"""Tests transaction gossip."""

from __future__ import annotations

import asyncio
from math import isqrt
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.native.crypto import PrivateKey
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.eth import transaction_fetcher, transaction_gossip, transaction_intake
from ophion.peers.eth.field_decoding import enclosed, encode_hashes, list_of_hashes
from ophion.peers.eth.messages import Code, TransactionHashes, decode_get
from ophion.peers.eth.recent_transactions import AGAIN_S
from ophion.peers.eth.response_validation import pooled_hash, read_transactions, wrapped
from ophion.peers.eth.transaction_gossip import ANNOUNCE_AGAIN_S, INTRODUCE_S, RELAY_LATER_S
from ophion.pool.events import DropReason
from ophion.primitives import rlp
from ophion.testing.bft_chain import CHAIN_ID
from ophion.testing.bft_chain import KEYS as VALIDATORS
from ophion.testing.eth_node import EthNode
from ophion.testing.links import PeerLink, connect
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction, with_empty_blobs
from tests.unit.peers.eth.scenarios import run_nodes, run_validator_nodes

KEYS = [PrivateKey(bytes([number]) * 32) for number in range(61, 91)]


def message(*raws: bytes) -> bytes:
    return rlp.list_of([wrapped(raw) for raw in raws])


def announcement(*raws: bytes) -> bytes:
    types = bytes(0 if raw[0] >= 0xC0 else raw[0] for raw in raws)
    return TransactionHashes(types, [len(raw) for raw in raws], [pooled_hash(raw) for raw in raws]).encode()


def in_full(wire: PeerLink) -> list[bytes]:
    """Return the transactions that one end of the connection has sent in full."""
    return [raw for code, payload in wire.sent if code == Code.TRANSACTIONS for raw in read_transactions(payload)]


def by_hash(wire: PeerLink) -> list[bytes]:
    """Return the transaction hashes that one end of the connection has announced."""
    sent = [payload for code, payload in wire.sent if code == Code.NEW_POOLED_TRANSACTION_HASHES]
    return [hash for payload in sent for hash in TransactionHashes.decode(payload).hashes]


def asked_for(wire: PeerLink) -> list[bytes]:
    """Return the transaction hashes that one end of the connection has requested."""
    sent = [payload for code, payload in wire.sent if code == Code.GET_POOLED_TRANSACTIONS]
    return [hash for one in sent for hash in list_of_hashes(decode_get(one, Code.GET_POOLED_TRANSACTIONS)[1], "hashes")]


def test_a_transaction_goes_in_full_to_some_and_by_hash_to_the_others_once(tmp_path: Path) -> None:
    async def scenario(one: EthNode, *others: EthNode) -> None:
        wires = [connect(one.eth, other.eth, (KEYS[0], KEYS[at + 1])) for at, other in enumerate(others)]
        await asyncio.sleep(1)
        raws = [legacy_transaction(DEV_KEYS[1], 0), fee_transaction(DEV_KEYS[1], 1)]
        hashes = await one.node.send(*raws)
        await asyncio.sleep(0.1)
        full = [wire for wire, _ in wires if in_full(wire)]
        assert len(full) == isqrt(len(others)) == 2
        assert [in_full(wire) for wire in full] == [raws, raws]
        assert [by_hash(wire) for wire, _ in wires if wire not in full] == [hashes, hashes, hashes]
        await asyncio.sleep(2)
        assert all(other.pool.get(hash) is not None for other in others for hash in hashes)
        assert all(not in_full(there) and not by_hash(there) for _, there in wires), "nothing is sent back"
        for here, _ in wires:
            assert len(in_full(here)) + len(by_hash(here)) + len(asked_for(here)) == 2

    run_nodes(tmp_path, 6, scenario)


def test_all_block_producers_get_a_transaction_in_full_at_once(tmp_path: Path) -> None:
    async def scenario(follower: EthNode, *validators: EthNode) -> None:
        entry, _ = connect(follower.eth, validators[0].eth, (KEYS[0], VALIDATORS[0]))
        wires = [
            connect(validators[0].eth, other.eth, (VALIDATORS[0], VALIDATORS[at + 1]))
            for at, other in enumerate(validators[1:])
        ]
        await asyncio.sleep(1)
        (own,) = await validators[0].node.send(legacy_transaction(VALIDATORS[0], 0, chain_id=CHAIN_ID))
        (foreign,) = await follower.node.send(legacy_transaction(VALIDATORS[1], 0, chain_id=CHAIN_ID))
        await asyncio.sleep(0.1)
        for hash in (own, foreign):
            assert all(other.pool.get(hash) is not None for other in validators), "half a second before it was fetched"
        assert in_full(entry)
        assert not any(by_hash(here) or asked_for(there) for here, there in wires)

    run_validator_nodes(tmp_path, 5, scenario)


def test_a_transaction_from_a_block_producer_goes_in_full_to_a_sample(tmp_path: Path) -> None:
    """A producer has already announced its transaction to other peers, so the node sends the transaction in full only
    to a sample.
    """

    async def scenario(one: EthNode, *others: EthNode) -> None:
        wires = [connect(one.eth, other.eth, (VALIDATORS[0], VALIDATORS[at + 1])) for at, other in enumerate(others)]
        await asyncio.sleep(1)
        await others[0].node.send(legacy_transaction(VALIDATORS[0], 0, chain_id=CHAIN_ID))
        await asyncio.sleep(0.1)
        sent_counts = [(len(in_full(here)), len(by_hash(here))) for here, _ in wires]
        assert sent_counts[0] == (0, 0)
        assert sorted(sent_counts[1:]) == [(0, 1), (1, 0)]

    run_validator_nodes(tmp_path, 4, scenario)


def test_a_transaction_is_not_relayed_between_block_producers_that_are_linked(tmp_path: Path) -> None:
    """The node announces the transaction later, because the other producers of this network do not get it directly."""

    async def scenario(one: EthNode, *others: EthNode) -> None:
        one.eth.transactions.are_linked = lambda peer, other: VALIDATORS[2].address not in (peer.address, other.address)
        wires = [connect(one.eth, other.eth, (VALIDATORS[0], VALIDATORS[at + 1])) for at, other in enumerate(others)]
        await asyncio.sleep(1)
        (foreign,) = await others[0].node.send(legacy_transaction(VALIDATORS[0], 0, chain_id=CHAIN_ID))
        await asyncio.sleep(0.1)
        assert [(in_full(here), by_hash(here)) for here, _ in wires if here is not wires[1][0]] == [([], []), ([], [])]
        assert len(in_full(wires[1][0])) == 1, "the producer without a report gets the transaction at once"
        await asyncio.sleep(RELAY_LATER_S + 1)
        assert by_hash(wires[2][0]) == [foreign]
        assert by_hash(wires[0][0]) == []
        assert all(other.pool.get(foreign) is not None for other in others)
        (own,) = await one.node.send(legacy_transaction(VALIDATORS[1], 0, chain_id=CHAIN_ID))
        await asyncio.sleep(0.1)
        assert all(other.pool.get(own) is not None for other in others), "own transactions go to all at once"

    run_validator_nodes(tmp_path, 4, scenario)


def test_a_transaction_that_is_mined_soon_is_not_announced_to_linked_block_producers(tmp_path: Path) -> None:
    async def scenario(one: EthNode, *others: EthNode) -> None:
        one.eth.transactions.are_linked = lambda peer, other: True
        wires = [connect(one.eth, other.eth, (VALIDATORS[0], VALIDATORS[at + 1])) for at, other in enumerate(others)]
        await asyncio.sleep(1)
        (hash,) = await others[0].node.send(legacy_transaction(VALIDATORS[0], 0, chain_id=CHAIN_ID))
        await asyncio.sleep(0.5)
        one.pool.drop([hash], DropReason.EXPIRED)
        await asyncio.sleep(2 * RELAY_LATER_S)
        assert not any(in_full(here) or by_hash(here) for here, _ in wires)

    run_validator_nodes(tmp_path, 4, scenario)


def test_in_a_large_validator_set_transactions_are_relayed_to_linked_block_producers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer sends its transactions in full to `MAX_MAKERS` others only."""
    monkeypatch.setattr(transaction_gossip, "MAX_MAKERS", 2)

    async def scenario(one: EthNode, *others: EthNode) -> None:
        one.eth.transactions.are_linked = lambda peer, other: True
        wires = [connect(one.eth, other.eth, (VALIDATORS[0], VALIDATORS[at + 1])) for at, other in enumerate(others)]
        await asyncio.sleep(1)
        await others[0].node.send(legacy_transaction(VALIDATORS[0], 0, chain_id=CHAIN_ID))
        await asyncio.sleep(0.1)
        sent_counts = [(len(in_full(here)), len(by_hash(here))) for here, _ in wires]
        assert sorted(sent_counts[1:]) == [(0, 1), (1, 0)]

    run_validator_nodes(tmp_path, 4, scenario)


def test_executable_transactions_are_announced_again(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode) -> None:
        near, far = connect(one.eth, two.eth, (KEYS[0], KEYS[1]))
        await asyncio.sleep(1)
        near.intercept = lambda code, payload: None
        lost, behind_a_gap = await one.node.send(legacy_transaction(DEV_KEYS[1], 0), legacy_transaction(DEV_KEYS[1], 2))
        await asyncio.sleep(1)
        near.intercept = None
        assert two.pool.get(lost) is None
        await asyncio.sleep(ANNOUNCE_AGAIN_S + 2)
        assert two.pool.get(lost) is not None
        assert two.pool.get(behind_a_gap) is None
        assert by_hash(near) == [lost]
        await asyncio.sleep(3 * ANNOUNCE_AGAIN_S)
        assert set(by_hash(near)) == {lost}
        assert len(asked_for(far)) == 1, "it is known now"
        for node in (one, two):
            node.pool.drop([lost, behind_a_gap], DropReason.EXPIRED)
        await asyncio.sleep(ANNOUNCE_AGAIN_S + 1)
        count = len(by_hash(near))
        await asyncio.sleep(3 * ANNOUNCE_AGAIN_S)
        assert len(by_hash(near)) == count, "no transaction is left to announce again"

    run_nodes(tmp_path, 2, scenario)


def test_an_evicted_transaction_is_accepted_when_announced_again(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode) -> None:
        connect(one.eth, two.eth, (KEYS[0], KEYS[1]))
        await asyncio.sleep(1)
        (hash,) = await one.node.send(legacy_transaction(DEV_KEYS[1], 0))
        await asyncio.sleep(1)
        two.pool.drop([hash], DropReason.EVICTED)
        assert two.pool.get(hash) is None
        await asyncio.sleep(2 * ANNOUNCE_AGAIN_S)
        assert two.pool.get(hash) is not None

    run_nodes(tmp_path, 2, scenario)


def test_a_transaction_is_accepted_when_its_sender_becomes_permitted(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        other.pool._admitter.refusal_of = lambda sender: "not listed"
        connect(one.eth, other.eth)
        await asyncio.sleep(1)
        [hash] = await one.node.send(legacy_transaction(DEV_KEYS[1], 0))
        await asyncio.sleep(5)
        assert other.pool.get(hash) is None
        other.pool._admitter.refusal_of = lambda sender: None
        other.pool.forget_accounts()
        await asyncio.sleep(AGAIN_S + 2 * ANNOUNCE_AGAIN_S)
        assert other.pool.get(hash) is not None

    run_nodes(tmp_path, 2, scenario)


def test_the_pool_is_not_announced_to_a_peer_that_disconnects_at_once(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        await one.node.send(legacy_transaction(DEV_KEYS[1], 0))
        here, _ = connect(one.eth, other.eth)
        await asyncio.sleep(INTRODUCE_S / 2)
        assert Code.NEW_POOLED_TRANSACTION_HASHES not in dict(here.sent)
        await asyncio.sleep(INTRODUCE_S)
        assert Code.NEW_POOLED_TRANSACTION_HASHES in dict(here.sent)

    run_nodes(tmp_path, 2, scenario)


def test_hashes_are_answered_with_exact_sizes_and_types(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        raws = [legacy_transaction(DEV_KEYS[1], 0), fee_transaction(DEV_KEYS[1], 1)]
        await one.node.send(*raws)
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        assert [payload for code, payload in here.sent if code == Code.NEW_POOLED_TRANSACTION_HASHES] == [
            announcement(*raws)
        ], "the pool is announced to a new peer"
        assert len(other.pool) == 2
        assert there.ended is None

    run_nodes(tmp_path, 2, scenario)


def test_large_transactions_are_sent_only_on_request(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, _ = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        long = legacy_transaction(DEV_KEYS[1], 0, data=bytes(5000), gas=300_000)
        hashes = await one.node.send(long)
        await asyncio.sleep(0.1)
        assert in_full(here) == []
        assert by_hash(here) == hashes
        await asyncio.sleep(1)
        assert other.pool.get(hashes[0]) is not None

    run_nodes(tmp_path, 2, scenario)


def test_a_transaction_that_arrives_within_half_a_second_is_not_requested(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        raw = legacy_transaction(DEV_KEYS[1], 0)
        there.deliver(Code.NEW_POOLED_TRANSACTION_HASHES, announcement(raw))
        await asyncio.sleep(0.3)
        there.deliver(Code.TRANSACTIONS, message(raw))
        await asyncio.sleep(2)
        assert asked_for(there) == []
        assert here.ended is None
        assert len(other.pool) == 1

    run_nodes(tmp_path, 2, scenario)


def test_another_announcer_is_asked_when_one_does_not_deliver(tmp_path: Path) -> None:
    async def scenario(liar: EthNode, honest: EthNode, other: EthNode) -> None:
        raw = legacy_transaction(DEV_KEYS[1], 0)
        _, from_liar = connect(liar.eth, other.eth, (KEYS[0], KEYS[2]))
        to_other, _ = connect(honest.eth, other.eth, (KEYS[1], KEYS[2]))
        to_other.intercept = lambda code, payload: None if code == Code.TRANSACTIONS else payload
        await asyncio.sleep(1)
        from_liar.deliver(Code.NEW_POOLED_TRANSACTION_HASHES, announcement(raw))
        hashes = await honest.node.send(raw)
        to_other.other.deliver(Code.NEW_POOLED_TRANSACTION_HASHES, announcement(raw))  # type: ignore[union-attr]
        await asyncio.sleep(2)
        assert asked_for(from_liar) == hashes
        assert other.pool.get(hashes[0]) is not None

    run_nodes(tmp_path, 3, scenario)


def test_announcements_without_delivery_are_bounded_and_dropped(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        fetcher = other.eth.transactions._fetcher
        for start in range(0, 20_000, 4000):
            hashes = [number.to_bytes(32, "big") for number in range(start, start + 4000)]
            there.deliver(
                Code.NEW_POOLED_TRANSACTION_HASHES, TransactionHashes(bytes(4000), [100] * 4000, hashes).encode()
            )
        assert len(fetcher) == transaction_fetcher.MAX_TRACKED
        await asyncio.sleep(60)
        assert len(fetcher) == 0
        assert len(asked_for(there)) == transaction_fetcher.MAX_TRACKED
        assert there.ended is None

    run_nodes(tmp_path, 2, scenario)


def test_a_peer_that_floods_transaction_announcements_is_disconnected(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        hashes = [number.to_bytes(32, "big") for number in range(4096)]
        payload = TransactionHashes(bytes(4096), [100] * 4096, hashes).encode()
        count = 0
        while there.ended is None:
            there.deliver(Code.NEW_POOLED_TRANSACTION_HASHES, payload)
            count += 1
        assert there.ended is not None
        assert there.ended[0] is DisconnectReason.USELESS
        assert 250 < count < 400
        await asyncio.sleep(0)
        assert len(other.eth.transactions._fetcher) == 0

    run_nodes(tmp_path, 2, scenario)


def test_undecodable_transactions_are_a_breach(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        for raw in (b"\x09" + bytes(50), b"\xc3\x01\x02\x03", b"\x02\xc0"):
            _, there = connect(one.eth, other.eth)
            await asyncio.sleep(0.1)
            there.deliver(Code.TRANSACTIONS, message(raw))
            await asyncio.sleep(0.1)
            assert there.ended is not None
            assert there.ended[0] is DisconnectReason.BREACH
            await asyncio.sleep(0.1)

    run_nodes(tmp_path, 2, scenario)


def test_invalid_transactions_are_dropped_and_not_relayed(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode, three: EthNode) -> None:
        _, there = connect(one.eth, two.eth, (KEYS[0], KEYS[1]))
        to_three, _ = connect(two.eth, three.eth, (KEYS[1], KEYS[2]))
        await asyncio.sleep(1)
        poor = PrivateKey(b"\x77" * 32)
        there.deliver(
            Code.TRANSACTIONS,
            message(legacy_transaction(poor, 0, value=1), legacy_transaction(DEV_KEYS[1], 0, chain_id=4)),
        )
        await asyncio.sleep(2)
        assert (len(two.pool), there.ended) == (0, None)
        assert in_full(to_three) == by_hash(to_three) == []

    run_nodes(tmp_path, 3, scenario)


def test_a_flood_of_invalid_transactions_is_throttled(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        poor = PrivateKey(b"\x77" * 32)
        judged = 0
        submit = other.pool.submit

        def counted(raws, origin, senders=None):  # type: ignore[no-untyped-def]
            nonlocal judged
            judged += len(raws)
            return submit(raws, origin, senders)

        other.pool.submit = counted  # type: ignore[method-assign]
        intake = next(iter(other.eth.transactions._intakes.values()))
        intake._invalid.spend(transaction_intake._MAX_INVALID - 100, asyncio.get_running_loop().time())
        nonce = 0
        while there.ended is None:
            raws = [legacy_transaction(poor, nonce + at, value=1) for at in range(20)]
            nonce += 20
            there.deliver(Code.TRANSACTIONS, message(*raws))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert judged <= 200
        assert there.ended[0] is DisconnectReason.USELESS

    run_nodes(tmp_path, 2, scenario)


def test_transactions_of_senders_that_are_not_permitted_are_dropped_silently(tmp_path: Path) -> None:
    """Account permissions differ between nodes, so the node does not penalise a peer that relays such a transaction."""

    async def scenario(one: EthNode, other: EthNode) -> None:
        _, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        other.pool._admitter.refusal_of = lambda sender: "not listed"
        other.pool.forget_accounts()
        intake = next(iter(other.eth.transactions._intakes.values()))
        intake._invalid.spend(transaction_intake._MAX_INVALID - 10, asyncio.get_running_loop().time())
        for nonce in range(0, 6000, 20):
            there.deliver(
                Code.TRANSACTIONS, message(*(legacy_transaction(DEV_KEYS[1], nonce + at) for at in range(20)))
            )
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert (len(other.pool), there.ended) == (0, None)

    run_nodes(tmp_path, 2, scenario)


def test_transactions_of_peers_are_ignored_while_this_node_is_far_behind(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        other.eth.is_accepting = lambda: False
        raw = legacy_transaction(DEV_KEYS[1], 0)
        there.deliver(Code.TRANSACTIONS, b"not even read")
        there.deliver(Code.NEW_POOLED_TRANSACTION_HASHES, b"not even read")
        there.deliver(Code.TRANSACTIONS, message(raw))
        await asyncio.sleep(2)
        assert (len(other.pool), there.ended) == (0, None)
        other.eth.is_accepting = lambda: True
        other.eth.transactions.forget_known()
        there.deliver(Code.TRANSACTIONS, message(raw))
        await asyncio.sleep(1)
        assert len(other.pool) == 1
        assert here.ended is None

    run_nodes(tmp_path, 2, scenario)


def test_own_transactions_are_sent_while_the_node_is_behind(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        connect(one.eth, other.eth)
        await asyncio.sleep(1)
        one.eth.is_accepting = lambda: False
        await one.node.send(legacy_transaction(DEV_KEYS[1], 0))
        await asyncio.sleep(1)
        assert len(other.pool) == 1

    run_nodes(tmp_path, 2, scenario)


def test_many_transactions_pass_through_a_line_of_nodes_without_loss(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode, three: EthNode) -> None:
        first = connect(one.eth, two.eth, (KEYS[0], KEYS[1]))
        second = connect(two.eth, three.eth, (KEYS[1], KEYS[2]))
        await asyncio.sleep(1)
        decoded = 0
        submit = three.pool.submit

        def counted(raws, origin, senders=None):  # type: ignore[no-untyped-def]
            nonlocal decoded
            decoded += len(raws)
            return submit(raws, origin, senders)

        three.pool.submit = counted  # type: ignore[method-assign]
        for start in range(0, 1000, 100):
            await one.node.send(*(legacy_transaction(DEV_KEYS[1], nonce) for nonce in range(start, start + 100)))
            await asyncio.sleep(0.01)
        await asyncio.sleep(5)
        assert (len(two.pool), len(three.pool)) == (1000, 1000)
        assert decoded == 1000
        assert not any(in_full(wire) or by_hash(wire) for wire in (first[1], second[1]))

    run_nodes(tmp_path, 3, scenario)


def test_a_mined_transaction_is_not_fetched(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        here.intercept = lambda code, payload: None if code == Code.TRANSACTIONS else payload
        raw = legacy_transaction(DEV_KEYS[1], 0)
        there.deliver(Code.NEW_POOLED_TRANSACTION_HASHES, announcement(raw))
        await one.node.send(raw)
        await one.node.seal(0.1)
        await asyncio.sleep(3)
        assert other.height == 1
        assert asked_for(there) == []

    run_nodes(tmp_path, 2, scenario)


def test_eth_66_announces_hashes_without_sizes(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, there = connect(one.eth, other.eth, offers=[66])
        await asyncio.sleep(1)
        raw = legacy_transaction(DEV_KEYS[1], 0, data=bytes(5000), gas=300_000)
        hashes = await one.node.send(raw)
        await asyncio.sleep(1)
        assert (Code.NEW_POOLED_TRANSACTION_HASHES, rlp.encode(hashes)) in here.sent
        assert other.pool.get(hashes[0]) is not None
        here.deliver(Code.GET_NODE_DATA, enclosed(5, encode_hashes(hashes)))
        assert here.sent[-1] == (Code.NODE_DATA, enclosed(5, rlp.EMPTY_LIST))
        assert (here.ended, there.ended) == (None, None)

    run_nodes(tmp_path, 2, scenario)


def test_blobs_are_sent_on_request_and_announced_with_their_size(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode) -> None:
        near, _ = connect(one.eth, two.eth, (KEYS[0], KEYS[1]))
        await asyncio.sleep(1)
        raw = with_empty_blobs(DEV_KEYS[1], 0, 2)
        [hash] = await one.node.send(raw)
        await asyncio.sleep(2)
        assert in_full(near) == []
        [sent] = [payload for code, payload in near.sent if code == Code.NEW_POOLED_TRANSACTION_HASHES]
        announced = TransactionHashes.decode(sent)
        assert (announced.types, announced.sizes, announced.hashes) == (b"\x03", [len(raw)], [hash])
        item = two.node.pool.get(hash)
        assert item is not None
        assert two.node.pool.network_form(item) == raw

    run_nodes(tmp_path, 2, scenario)


def test_unsolicited_blobs_are_a_breach(tmp_path: Path) -> None:
    async def scenario(one: EthNode, two: EthNode) -> None:
        _near, far = connect(one.eth, two.eth, (KEYS[0], KEYS[1]))
        await asyncio.sleep(1)
        far.deliver(Code.TRANSACTIONS, message(with_empty_blobs(DEV_KEYS[1], 0)))
        await asyncio.sleep(1)
        assert far.ended is not None
        assert far.ended[0] is DisconnectReason.BREACH
        assert "unsolicited blob transactions" in far.ended[1]

    run_nodes(tmp_path, 2, scenario)


@pytest.mark.parametrize(("what", "change"), [("size", (0, 10)), ("type", (-1, 0))])
def test_an_announcement_of_blobs_must_be_correct(tmp_path: Path, what: str, change: tuple[int, int]) -> None:
    async def scenario(one: EthNode, two: EthNode) -> None:
        near, far = connect(one.eth, two.eth, (KEYS[0], KEYS[1]))
        await asyncio.sleep(1)
        raw = with_empty_blobs(DEV_KEYS[1], 0)
        await one.node.send(raw)

        def lie(code: int, payload: bytes) -> bytes:
            if code != Code.NEW_POOLED_TRANSACTION_HASHES:
                return payload
            announcement_of_one = TransactionHashes.decode(payload)
            return replace(
                announcement_of_one, types=bytes([3 + change[0]]), sizes=[announcement_of_one.sizes[0] + change[1]]
            ).encode()

        near.intercept = lie
        await asyncio.sleep(2)
        assert far.ended is not None
        assert far.ended[0] is DisconnectReason.BREACH
        assert what in far.ended[1]

    run_nodes(tmp_path, 2, scenario)


def test_senders_are_named_to_block_producers_before_their_transactions(tmp_path: Path) -> None:
    async def scenario(one: EthNode, *others: EthNode) -> None:
        keys = [VALIDATORS[1], VALIDATORS[2], KEYS[0]]
        wires = [connect(one.eth, other.eth, (VALIDATORS[0], key)) for other, key in zip(others, keys, strict=True)]
        named: list[tuple[bytes, bytes]] = []
        one.eth.transactions.name_senders = lambda peer, senders: named.append((peer.address, senders))
        await asyncio.sleep(1)
        await one.node.send(*[legacy_transaction(VALIDATORS[at], 0, chain_id=CHAIN_ID) for at in range(2)])
        await asyncio.sleep(0.1)
        full = [key.address for (wire, _), key in zip(wires, keys, strict=True) if in_full(wire)]
        senders = VALIDATORS[0].address + VALIDATORS[1].address
        assert sorted(named) == sorted((address, senders) for address in full if address != KEYS[0].address)
        assert len(named) >= 2

    run_validator_nodes(tmp_path, 4, scenario)


def test_senders_are_kept_for_the_next_message_of_a_block_producer(tmp_path: Path) -> None:
    async def scenario(one: EthNode, *others: EthNode) -> None:
        for other, key in zip(others, (VALIDATORS[1], KEYS[0]), strict=True):
            connect(one.eth, other.eth, (VALIDATORS[0], key))
        await asyncio.sleep(1)
        gossip = one.eth.transactions
        by_key = {peer.peer.address: peer for peer in one.eth.peers}
        producer, unknown = by_key[VALIDATORS[1].address], by_key[KEYS[0].address]
        for peer in (producer, unknown):
            gossip.senders_named(peer.peer, VALIDATORS[0].address)
        gossip.senders_named(producer.peer, b"\x01" * 21)
        assert dict(gossip._named) == {producer.peer: VALIDATORS[0].address}
        gossip.received(producer, message(legacy_transaction(VALIDATORS[0], 0, chain_id=CHAIN_ID)))
        assert not gossip._named
        gossip.senders_named(producer.peer, VALIDATORS[0].address)
        gossip.left(producer)
        assert not gossip._named
        await asyncio.sleep(1)
        assert len(one.node.pool) == 1

    run_validator_nodes(tmp_path, 3, scenario)


def test_transactions_are_collected_longer_while_many_arrive(tmp_path: Path) -> None:
    async def scenario(one: EthNode, other: EthNode) -> None:
        here, _ = connect(one.eth, other.eth)
        await asyncio.sleep(1)
        nonces = iter(range(1000))

        async def messages_for(some: int) -> list[int]:
            """Return the number of transactions in each message of 0.12 s, if this many arrive every 10 ms."""
            here.sent.clear()
            for _ in range(12):
                await one.node.send(*[legacy_transaction(DEV_KEYS[0], next(nonces)) for _ in range(some)])
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            sent = [payload for code, payload in here.sent if code == Code.TRANSACTIONS]
            return [len(read_transactions(payload)) for payload in sent]

        assert max(await messages_for(2)) <= 3 * 2
        assert max(await messages_for(12)) >= 4 * 12
        assert max(await messages_for(2)) <= 3 * 2, "the time is short again at once"
        gossip = one.eth.transactions
        for _ in range(2):
            await one.node.send(*[legacy_transaction(DEV_KEYS[0], next(nonces)) for _ in range(60)])
            await asyncio.sleep(0.5)
            assert not gossip._is_busy, "a burst every half second is not a high rate"

    run_nodes(tmp_path, 2, scenario)

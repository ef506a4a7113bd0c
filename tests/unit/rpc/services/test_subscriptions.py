"""Tests notifications of subscribers, including reorganisations."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import Callable, Coroutine
from typing import Any, get_type_hints

import pytest

from ophion.chain.events import ChainBlock, Extended, Reorged
from ophion.errors import RpcError
from ophion.native.crypto import keccak256
from ophion.primitives.header import HashedHeader
from ophion.rpc.methods import eth_filters, priv_state
from ophion.rpc.services.log_query import read_ahead
from ophion.rpc.services.subscriptions import OptionsParam, Subscriptions
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.contracts import LOGGING, deploying, many_logs
from tests.unit.rpc.interface import Interface


class Listener:
    """A connection that records notifications."""

    def __init__(self, client: str = "127.0.0.1") -> None:
        self.client = client
        self.received: list[tuple[str, Any]] = []
        self.is_closed = False

    def notify(self, message: bytes) -> None:
        content = json.loads(message)
        assert (content["jsonrpc"], content["method"]) == ("2.0", "eth_subscription")
        self.received.append((content["params"]["subscription"], content["params"]["result"]))

    def close(self) -> None:
        self.is_closed = True

    def take(self) -> list[Any]:
        received, self.received = self.received, []
        return [result for _, result in received]


class Counting(Listener):
    """A connection that counts notifications."""

    count = 0

    def notify(self, message: bytes) -> None:
        self.count += 1


def tell(dev: Interface, story: Callable[[Subscriptions, Listener], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario while the subscription service runs."""

    async def main() -> None:
        subscriptions = dev.context.subscriptions
        service = asyncio.create_task(subscriptions.run(lambda: None))
        await settle()
        try:
            await story(subscriptions, Listener())
        finally:
            service.cancel()
            await asyncio.gather(service, return_exceptions=True)

    dev.run(main())


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def test_new_heads_come_as_blocks_with_hashes_or_transactions(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        short = subscriptions.subscribe(listener, "newHeads", None)
        full = subscriptions.subscribe(listener, "newHeads", {"includeTransactions": True})
        header, (sent,) = await dev.node.mine(legacy_transaction(DEV_KEYS[1], 0))
        await settle()
        received = dict(listener.received)
        assert received[hex(short)]["hash"] == received[hex(full)]["hash"] == "0x" + header.hash.hex()
        assert received[hex(short)]["transactions"] == ["0x" + sent.hex()]
        assert received[hex(full)]["transactions"][0]["hash"] == "0x" + sent.hex()

    tell(dev, story)


def test_heads_are_sent_once_in_the_step_of_the_new_head(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        subscriptions.subscribe(listener, "newHeads", None)
        received = list[int]()
        chain = dev.context.queries.chain
        stop = chain.events.listen(lambda event: received.append(len(listener.received)))
        for number in range(1, 4):
            await dev.node.seal()
            assert received == list(range(1, number + 1)), "a later listener is called afterwards"
        await settle()
        stop()
        assert [block["number"] for block in listener.take()] == ["0x1", "0x2", "0x3"]

    tell(dev, story)


def test_a_subscription_gets_no_head_from_before_it(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        events = dev.context.queries.chain.events
        header = await dev.node.seal()
        body = dev.context.queries.store.body(header.hash)
        assert body is not None
        subscriptions.subscribe(Listener(), "syncing", None)
        await settle()
        for _ in range(2):
            events.publish(Extended((ChainBlock(header, body),)))
        subscriptions.subscribe(listener, "newHeads", None)
        await settle()
        assert listener.take() == [], "the second event was still waiting"

    tell(dev, story)


def test_heads_do_not_overtake_what_belongs_to_earlier_blocks(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        subscriptions.subscribe(listener, "newHeads", None)
        subscriptions.subscribe(listener, "syncing", None)
        events = dev.context.queries.chain.events
        header = await dev.node.seal()
        await settle()
        listener.take()
        body = dev.context.queries.store.body(header.hash)
        assert body is not None
        for _ in range(2):
            events.publish(Extended((ChainBlock(header, body),)))
        assert len(listener.received) == 1, "the second waits for its turn"
        await settle()
        assert [type(one) for one in listener.take()] == [dict, bool, dict, bool]

    tell(dev, story)


def test_pending_transactions_come_as_hashes_or_objects_and_leave_as_hashes(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        hashes = subscriptions.subscribe(listener, "newPendingTransactions", False)
        objects = subscriptions.subscribe(listener, "newPendingTransactions", True)
        dropped = subscriptions.subscribe(listener, "droppedPendingTransactions", None)
        (first,) = await dev.node.send(legacy_transaction(DEV_KEYS[1], 0))
        await settle()
        received = dict(listener.received)
        listener.received.clear()
        assert received[hex(hashes)] == "0x" + first.hex()
        assert received[hex(objects)]["hash"] == "0x" + first.hex()
        assert received[hex(objects)]["blockHash"] is None
        await dev.node.send(legacy_transaction(DEV_KEYS[1], 0, gas_price=10**10))
        await settle()
        assert dict(listener.received)[hex(dropped)] == "0x" + first.hex()

    tell(dev, story)


def test_sync_status_is_published_with_each_block(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        subscriptions.subscribe(listener, "syncing", None)
        await dev.node.seal()
        await settle()
        assert listener.take() == [False]

    tell(dev, story)


def test_logs_come_one_by_one_and_go_when_their_block_does(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        create = legacy_transaction(DEV_KEYS[1], 0, to=None, gas=300_000, data=deploying(LOGGING))
        await dev.node.mine(create)
        contract = _created(dev)
        subscriptions.subscribe(listener, "logs", {"address": "0x" + contract.hex()})
        subscriptions.subscribe(listener, "logs", {"address": "0x" + "11" * 20})
        calls = [legacy_transaction(DEV_KEYS[1], nonce, to=contract, gas=100_000) for nonce in (1, 2)]
        header, _ = await dev.node.mine(*calls)
        await settle()
        added = listener.take()
        assert [one["logIndex"] for one in added] == ["0x0", "0x1"]
        assert not any(one["removed"] for one in added)
        block = _block(dev, header)
        dev.node.chain.events.publish(Reorged((block,), (block,)))
        await settle()
        received = listener.take()
        assert [one["removed"] for one in received] == [True, True, False, False]
        assert [{**one, "removed": False} for one in received[:2]] == added

    tell(dev, story)


def test_a_reorganisation_gives_every_block_of_the_new_branch(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        first, second = await dev.node.seal(), await dev.node.seal()
        subscriptions.subscribe(listener, "newHeads", None)
        one, two = _block(dev, first), _block(dev, second)
        dev.node.chain.events.publish(Reorged((two, one), (one, two)))
        await settle()
        assert [head["number"] for head in listener.take()] == ["0x1", "0x2"]

    tell(dev, story)


def test_a_closed_connection_gets_no_notifications(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        subscriptions.subscribe(listener, "newHeads", None)
        subscriptions.drop(listener)
        await dev.node.seal()
        await settle()
        assert listener.take() == []

    tell(dev, story)


def test_subscribers_of_a_node_that_cannot_keep_up_are_disconnected(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        subscriptions.subscribe(listener, "newHeads", None)
        block = _block(dev, await dev.node.seal())
        await settle()
        listener.take()
        for _ in range(5000):
            dev.node.chain.events.publish(Extended((block,)))
        await settle()
        assert listener.is_closed
        other = Listener()
        subscriptions.subscribe(other, "newHeads", None)
        await dev.node.seal()
        await settle()
        assert len(other.take()) == 1

    tell(dev, story)


def _created(dev: Interface) -> bytes:
    text = dev.node.chain.store.block_receipts_json(dev.node.queries.head_hash, False)
    assert text is not None
    return bytes.fromhex(json.loads(text)[0]["contractAddress"][2:])


def _block(dev: Interface, header: HashedHeader) -> ChainBlock:
    body = dev.node.chain.store.body(header.hash)
    assert body is not None
    return ChainBlock(header, body)


def test_one_connection_has_so_many_subscriptions_and_no_more(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        last = 0
        for _ in range(1024):
            last = subscriptions.subscribe(listener, "newHeads", None)
        with pytest.raises(RpcError, match="Number of subscriptions exceeds the limit") as caught:
            subscriptions.subscribe(listener, "logs", None)
        assert caught.value.code == -32005
        subscriptions.subscribe(Listener(), "newHeads", None)
        subscriptions.unsubscribe(listener, last)
        subscriptions.subscribe(listener, "newHeads", None)
        subscriptions.drop(listener)
        assert len(subscriptions) == 1

    tell(dev, story)


def test_one_client_has_a_share_of_all_bytes_whatever_its_connections(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        wide = {"address": [f"0x{number:040x}" for number in range(10_000)]}
        for _ in range(5):
            subscriptions.subscribe(Listener("greedy"), "logs", wide)
        with pytest.raises(RpcError, match="Number of subscriptions"):
            subscriptions.subscribe(Listener("greedy"), "logs", wide)
        one = Listener("modest")
        subscriptions.subscribe(one, "logs", wide)
        subscriptions.drop(one)
        subscriptions.subscribe(listener, "newHeads", None)

    tell(dev, story)


def test_many_subscribers_are_notified_in_batches(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        turns: set[int] = set()
        listeners = [Listener() for _ in range(1000)]
        for one in listeners:
            subscriptions.subscribe(one, "newHeads", None)
        await dev.node.seal()
        while len(notified := [one for one in listeners if one.received]) < len(listeners):
            turns.add(len(notified))
            await asyncio.sleep(0)
        assert len(turns) >= 2, "others came in between"
        assert all(len(one.received) == 1 for one in listeners)

    tell(dev, story)


def test_logs_of_a_block_reach_a_subscriber_together(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        order: list[int] = []

        class Noting(Listener):
            def notify(self, message: bytes) -> None:
                super().notify(message)
                order.append(int(self.client))

        some = [Noting(str(number)) for number in range(3)]
        for one in some:
            subscriptions.subscribe(one, "logs", {})
        await dev.node.mine(legacy_transaction(DEV_KEYS[1], 0, to=None, gas=3_000_000, data=many_logs(5)))
        await settle()
        assert order == [0] * 5 + [1] * 5 + [2] * 5
        assert [log["logIndex"] for log in some[2].take()] == [hex(number) for number in range(5)]

    tell(dev, story)


def test_notifications_wait_while_the_node_works_on_its_own_block(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        counting = [Counting() for _ in range(200)]
        for one in counting:
            subscriptions.subscribe(one, "newHeads", None)
        priority = dev.context.lanes.block_priority
        priority._longest_s = 60.0  # set a long limit, so that the block keeps its priority on a slow machine too
        await dev.node.seal()
        priority.begin()
        await settle()
        assert sum(one.count for one in counting) < 200
        priority.end()
        await asyncio.sleep(0.02)
        await settle()
        assert [one.count for one in counting] == [1] * 200

    tell(dev, story)


def test_a_wide_filter_is_read_with_the_parameters_and_not_again_on_the_loop(dev: Interface) -> None:
    """A thread decodes long parameters, because 100,000 addresses took a tenth of a second on the event loop."""
    assert get_type_hints(eth_filters.subscribe, include_extras=True)["options"] is OptionsParam
    assert get_type_hints(priv_state.subscribe, include_extras=True)["options"] is OptionsParam

    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        addresses = ["0x" + "11" * 20] * 3
        options = read_ahead({"address": addresses, "topics": [], "includeTransactions": 5})
        addresses.append("nobody")
        assert subscriptions.subscribe(listener, "logs", options)
        wrong = read_ahead({"address": addresses})
        addresses.pop()
        with pytest.raises(RpcError, match="Invalid Request"):
            subscriptions.subscribe(listener, "logs", wrong)
        with pytest.raises(RpcError, match="Invalid Request"):
            subscriptions.subscribe(listener, "newHeads", options)
        assert subscriptions.subscribe(listener, "newHeads", wrong)

    tell(dev, story)


def test_logs_that_many_queries_want_are_not_held_all_at_once(dev: Interface) -> None:
    """Regression: one transaction and a thousand slightly different subscriptions made a node hold gigabytes."""
    queries, logs = 200, 200

    async def story(subscriptions: Subscriptions, _: Listener) -> None:
        listener = Counting()
        for number in range(queries):
            subscriptions.subscribe(listener, "logs", {"toBlock": hex(1000 + number)})
        sent = legacy_transaction(DEV_KEYS[1], 0, to=None, gas=1_000_000, data=many_logs(logs))
        tracemalloc.start()
        try:
            await dev.node.mine(sent)
            while listener.count < queries * logs:  # noqa: ASYNC110
                await asyncio.sleep(0)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 8_000_000, "all of them are twenty megabytes"

    tell(dev, story)


def test_connections_that_go_leave_nothing_of_their_subscriptions(dev: Interface) -> None:
    async def story(subscriptions: Subscriptions, listener: Listener) -> None:
        crowd = [Listener() for _ in range(20)]
        for one in crowd:
            for kind in ("newHeads", "logs", "newPendingTransactions", "newHeads"):
                last = subscriptions.subscribe(one, kind, None)
            subscriptions.unsubscribe(one, last)
        subscription = subscriptions.subscribe(listener, "logs", None)
        assert (len(subscriptions), subscriptions.callers()) == (61, {*crowd, listener})
        for one in crowd:
            subscriptions.drop(one)
            subscriptions.drop(one)
        assert (len(subscriptions), subscriptions.callers()) == (1, {listener})
        subscriptions.unsubscribe(listener, subscription)
        assert (len(subscriptions), subscriptions.callers()) == (0, set())
        assert subscriptions.subscribe(listener, "newHeads", None) > subscription
        await dev.node.seal()
        await settle()
        assert len(listener.received) == 1
        assert not any(one.received for one in crowd)

    tell(dev, story)


def test_receipts_that_many_have_named_are_not_held_all_at_once(dev: Interface) -> None:
    crowd, logs = 300, 400

    async def story(subscriptions: Subscriptions, _: Listener) -> None:
        sent = legacy_transaction(DEV_KEYS[1], 0, to=None, gas=1_000_000, data=many_logs(logs))
        name, other = "0x" + keccak256(sent).hex(), "0x" + "11" * 32
        listener, unnamed, several = Counting(), Counting(), Listener()
        for number in range(crowd):
            subscriptions.subscribe(listener, "transactionReceipts", {"transactionHashes": [name, f"0x{number:064x}"]})
        subscriptions.subscribe(unnamed, "transactionReceipts", {"transactionHashes": [other]})
        subscriptions.subscribe(several, "transactionReceipts", {"transactionHashes": [name, other]})
        tracemalloc.start()
        turns = set[int]()
        try:
            await dev.node.mine(sent)
            while listener.count < crowd:
                turns.add(listener.count)
                await asyncio.sleep(0)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        await settle()
        assert peak < 8_000_000, "all of them are forty megabytes"
        assert len(turns) > 20, "long messages leave others a turn sooner"
        assert unnamed.count == 0
        ((receipt,),) = several.take()
        assert (receipt["transactionHash"], len(receipt["logs"])) == (name, logs)

    tell(dev, story)

"""Topics run callbacks in the publisher's step, and have bounded queues with a rule for a full queue."""

from __future__ import annotations

import asyncio

import pytest

from ophion.runtime.topic import SubscriptionLagged, Topic, WhenFull


def test_callbacks_run_in_order_before_publish_returns() -> None:
    topic: Topic[int] = Topic()
    received: list[str] = []
    topic.listen(lambda event: received.append(f"first {event}"))
    stop = topic.listen(lambda event: received.append(f"second {event}"))
    topic.publish(1)
    stop()
    topic.publish(2)
    assert received == ["first 1", "second 1", "first 2"]


def test_a_callback_may_end_itself_while_it_runs() -> None:
    topic: Topic[int] = Topic()
    received: list[int] = []

    def once(event: int) -> None:
        received.append(event)
        stop()

    stop = topic.listen(once)
    topic.publish(1)
    topic.publish(2)
    assert received == [1]


def test_a_subscription_reads_what_was_published_after_it_began() -> None:
    async def story() -> list[int]:
        topic: Topic[int] = Topic()
        topic.publish(0)
        subscription = topic.subscribe("reader", 10, WhenFull.DROP_OLDEST)
        topic.publish(1)
        topic.publish(2)
        subscription.close()
        topic.publish(3)
        return [event async for event in subscription]

    assert asyncio.run(story()) == [1, 2]


def test_a_waiting_reader_is_woken() -> None:
    async def story() -> int:
        topic: Topic[int] = Topic()
        subscription = topic.subscribe("reader", 10, WhenFull.DROP_OLDEST)
        asyncio.get_running_loop().call_soon(topic.publish, 7)
        return await anext(subscription)

    assert asyncio.run(story()) == 7


def test_closing_ends_a_waiting_reader() -> None:
    async def story() -> list[int]:
        topic: Topic[int] = Topic()
        subscription = topic.subscribe("reader", 10, WhenFull.DROP_OLDEST)
        asyncio.get_running_loop().call_soon(subscription.close)
        return [event async for event in subscription]

    assert asyncio.run(story()) == []


def test_a_full_queue_can_drop_the_oldest() -> None:
    async def story() -> list[int]:
        topic: Topic[int] = Topic()
        subscription = topic.subscribe("gauge", 2, WhenFull.DROP_OLDEST)
        for event in range(5):
            topic.publish(event)
        subscription.close()
        return [event async for event in subscription]

    assert asyncio.run(story()) == [3, 4]


def test_a_full_queue_can_disconnect_its_reader() -> None:
    async def story() -> None:
        topic: Topic[int] = Topic()
        subscription = topic.subscribe("client", 2, WhenFull.DISCONNECT)
        for event in range(3):
            topic.publish(event)
        assert not topic.has_listeners
        with pytest.raises(SubscriptionLagged, match="client fell more than 2 events behind"):
            await anext(subscription)

    asyncio.run(story())


def test_a_topic_knows_whether_it_has_listeners() -> None:
    topic: Topic[int] = Topic()
    assert not topic.has_listeners
    stop = topic.listen(lambda event: None)
    assert topic.has_listeners
    stop()
    assert not topic.has_listeners


def test_what_does_not_concern_the_reader_does_not_wake_it() -> None:
    async def story() -> None:
        topic: Topic[int] = Topic()
        subscription = topic.subscribe("reader", 1, WhenFull.DISCONNECT, lambda event: event > 5)
        reading = asyncio.ensure_future(anext(subscription))
        await asyncio.sleep(0)
        for event in (1, 2, 3):
            topic.publish(event)
        await asyncio.sleep(0)
        assert not reading.done()
        topic.publish(6)
        assert await reading == 6

    asyncio.run(story())

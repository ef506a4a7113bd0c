"""Push notifications over WebSocket: `eth_subscribe` (json-rpc.md 1.10).

`Subscriptions` is a service. It reads chain and pool events from bounded queues, renders each message once for all
subscribers, and passes the bytes to the connections. The service never waits for a client: the connection of a slow
reader closes itself (`Caller.notify`). If an event queue overflows, the service disconnects all subscribers. Otherwise
subscribers would miss events without noticing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Annotated, Any, Final, Protocol, TypeVar

from msgspec import Struct

from ophion.chain.events import ChainBlock, ChainEvent, Reorged
from ophion.errors import RpcError
from ophion.native.exceptions import NativeError
from ophion.native.store import Store
from ophion.pool.events import Added, PoolEvent
from ophion.primitives.hexcodec import HexError, parse_number
from ophion.primitives.types import EMPTY_BLOOM, Hash32
from ophion.rpc.errors import INVALID_REQUEST, SUBSCRIPTION_NOT_FOUND, TOO_MANY_SUBSCRIPTIONS
from ophion.rpc.schema.registry import Caller, NotifiedCaller
from ophion.rpc.schema.wire_types import WireType, decode_boolean, encode_data
from ophion.rpc.services.client_quotas import MEBIBYTE, ClientQuotas
from ophion.rpc.services.log_batches import MAX_QUERIES, logs_of, portion
from ophion.rpc.services.log_query import LogQuery, ReadAhead, query_of, read_ahead
from ophion.rpc.services.receipt_subscriptions import ReceiptSubscriptions, named_hashes
from ophion.runtime.thread_pools import LaneFull, Lanes
from ophion.runtime.topic import SubscriptionLagged, Topic, WhenFull

logger = logging.getLogger(__name__)

T = TypeVar("T")

_QUEUE: Final = 4096
_MAX_SUBSCRIPTIONS: Final = 65_536
_SHARE: Final = 4
"""Divisor of the limits: one client may use at most a quarter of all subscriptions and of all bytes."""
_MAX_BYTES: Final = 16 * MEBIBYTE
_BYTES_OF_A_HASH: Final = 160
_BATCH_SIZE: Final = 64
_PRIORITY_WAIT_S: Final = 0.001
_SHORT_BYTES: Final = 4096
"""Size in bytes of a short message. A longer message counts as several messages in the limit per batch."""
_GROUP_BYTES: Final = 16 * 1024
"""Maximum bytes of logs in one write to a subscriber. After a larger write, the subscriber would look like a slow
reader.
"""
_MAX_INLINE: Final = 64
"""Maximum subscriptions that are served in one iteration of the event loop."""
_MAX_EVENTS: Final = 64
"""Maximum number of entries in `Subscriptions._last_id_at`."""


class SubscriptionKind(Enum):
    """Subscription types by their wire names."""

    NEW_HEADS = "newHeads"
    LOGS = "logs"
    NEW_PENDING = "newPendingTransactions"
    DROPPED_PENDING = "droppedPendingTransactions"
    RECEIPTS = "transactionReceipts"
    SYNCING = "syncing"


class Subscriber(NotifiedCaller, Protocol):
    """A connection that accepts notifications and can be closed."""

    def close(self) -> None: ...


class _Subscription(Struct, frozen=True, eq=False):
    id: int
    kind: SubscriptionKind
    caller: Subscriber
    in_full: bool
    query: LogQuery
    hashes: frozenset[Hash32] | None
    """Transactions whose receipts the subscriber gets; None for all transactions."""
    client: str

    @property
    def weight(self) -> int:
        """Return the memory that the subscription takes, in bytes."""
        return self.query.weight + _BYTES_OF_A_HASH * len(self.hashes or ())

    def send(self, result: bytes) -> None:
        self.caller.notify(
            b'{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"%#x","result":%b}}'
            % (self.id, result)
        )


AnyParam = Annotated[Any, WireType("any", "depends on the kind", {}, lambda value: value)]
"""A parameter that `subscribe` decodes itself, because an invalid value must give the error `Invalid Request`."""
OptionsParam = Annotated[Any, WireType("any", "depends on the kind", {}, read_ahead)]
"""Options of a subscription, decoded off the event loop, because a filter object may have a hundred thousand
addresses.
"""


def read_id(value: object) -> int:
    """Decode a subscription id. Raises `Invalid Request` if it is malformed."""
    try:
        subscription_id = parse_number(value, 63) if type(value) is str else None
    except HexError:
        subscription_id = None
    if subscription_id is None:
        raise INVALID_REQUEST("subscription: an id is expected")
    return subscription_id


class SubscriptionService(Protocol):
    """A service that has subscribers."""

    name: str

    def __len__(self) -> int: ...

    def callers(self) -> set[Subscriber]:
        """Return the connections with subscriptions."""

    def drop(self, caller: Caller) -> None:
        """Remove the subscriptions of a closed connection."""


async def follow(
    topic: Topic[T],
    subscribed: SubscriptionService,
    handle: Callable[[T], Awaitable[None]],
    concerns: Callable[[T], bool] = lambda event: True,
) -> None:
    """Pass events to `handle` until cancelled. If the event queue overflows, disconnect the subscribers."""
    while True:
        events = topic.subscribe(
            subscribed.name, _QUEUE, WhenFull.DISCONNECT, lambda event: len(subscribed) and concerns(event)
        )
        try:
            async for event in events:
                if len(subscribed):
                    await handle(event)
        except SubscriptionLagged as error:
            logger.warning("disconnecting subscribers error=%s", error)
            for caller in subscribed.callers():
                caller.close()
                subscribed.drop(caller)
        finally:
            events.close()


class Subscriptions:
    """All subscriptions of all connections."""

    name = "subscriptions"

    def __init__(
        self,
        store: Store,
        chain_events: Topic[ChainEvent],
        pool_events: Topic[PoolEvent],
        lanes: Lanes,
        with_total_difficulty: bool,
        sync_status: Callable[[], bytes],
        most: int = 1024,
        shows_revert_reason: bool = False,
    ) -> None:
        self._store = store
        self._chain_events = chain_events
        self._pool_events = pool_events
        self._lanes = lanes
        self._with_total_difficulty = with_total_difficulty
        self._sync_status = sync_status
        self._most = most
        self._shows_revert_reason = shows_revert_reason
        self._of_caller: dict[Subscriber, dict[int, _Subscription]] = {}
        self._of_query: dict[LogQuery, dict[int, _Subscription]] = {}
        """Log subscriptions by query. Subscriptions with equal queries get the same messages."""
        self._quotas = ClientQuotas(
            _MAX_SUBSCRIPTIONS, max(most, _MAX_SUBSCRIPTIONS // _SHARE), _MAX_BYTES, _MAX_BYTES // _SHARE
        )
        self._sent = 0
        self._by_id: dict[int, _Subscription] = {}
        self.subscribed = dict.fromkeys(SubscriptionKind, 0)
        """Number of subscriptions made so far, by kind."""
        self.unsubscribed = dict.fromkeys(SubscriptionKind, 0)
        self._of_kind: dict[SubscriptionKind, dict[int, _Subscription]] = {kind: {} for kind in SubscriptionKind}
        self._last_id = 0
        self._unfinished: ChainEvent | None = None
        """The last chain event while some of its notifications are unsent, else None."""
        self._heads_sent_for: ChainEvent | None = None
        """The chain event whose heads have been sent already."""
        self._last_id_at = deque[tuple[ChainEvent, int]](maxlen=_MAX_EVENTS)
        """For each event, the id of the newest subscription at that time. Later subscriptions do not get the heads of
        the event.
        """
        chain_events.listen(self._on_new_head, is_early=True)

    def __len__(self) -> int:
        return len(self._by_id)

    # --- requests of clients ---------------------------------------------------------------------

    def subscribe(self, caller: Subscriber, kind: object, options: object) -> int:
        """Add a subscription to this connection; invalid parameters raise `Invalid Request`."""
        try:
            wanted = SubscriptionKind(kind)
        except ValueError:
            raise INVALID_REQUEST(
                f"kind: one of {', '.join(one.value for one in SubscriptionKind)} is expected"
            ) from None
        try:
            query = query_of(options) if wanted is SubscriptionKind.LOGS else LogQuery()
            options = options.given if type(options) is ReadAhead else options
            in_full = (
                _wants_objects(options)
                if wanted in (SubscriptionKind.NEW_HEADS, SubscriptionKind.NEW_PENDING)
                else False
            )
            hashes = named_hashes(options) if wanted is SubscriptionKind.RECEIPTS else None
        except RpcError as error:
            raise INVALID_REQUEST(None if error.data is None else str(error.data)) from None
        one = _Subscription(self._last_id + 1, wanted, caller, in_full, query, hashes, caller.client)
        count, quotas = len(self._of_caller.get(caller, ())) + 1, self._quotas
        fits = quotas.fits_total(one.weight) and quotas.fits_client(one.client, one.weight)
        if count > self._most or not fits:
            raise TOO_MANY_SUBSCRIPTIONS()
        if not self._by_id:
            # this is the first subscription, so no notification of an earlier event is waiting to be sent
            self._unfinished = None
        quotas.keep(one.client, one.weight)
        self.subscribed[wanted] += 1
        self._last_id = one.id
        self._by_id[one.id] = one
        for found in self._places(one):
            found[one.id] = one
        return one.id

    def unsubscribe(self, caller: Caller, subscription_id: int) -> bool:
        """End a subscription. Subscriptions of other connections count as unknown."""
        found = self._by_id.get(subscription_id)
        if found is None or found.caller is not caller:
            raise SUBSCRIPTION_NOT_FOUND()
        self.unsubscribed[found.kind] += 1
        self._remove(found)
        return True

    def callers(self) -> set[Subscriber]:
        """Return the connections with subscriptions."""
        return set(self._of_caller)

    def drop(self, caller: Caller) -> None:
        """Remove the subscriptions of a closed connection."""
        # a connection without subscriptions costs only a lookup, because thousands of connections may close together
        for found in list(self._of_caller.get(caller, {}).values()):  # type: ignore[call-overload]
            self._remove(found)

    def _remove(self, found: _Subscription) -> None:
        del self._by_id[found.id]
        for place in self._places(found):
            del place[found.id]
        if not self._of_caller[found.caller]:
            del self._of_caller[found.caller]
        if found.kind is SubscriptionKind.LOGS and not self._of_query[found.query]:
            del self._of_query[found.query]
        self._quotas.drop(found.client, found.weight)

    def _places(self, one: _Subscription) -> Iterator[dict[int, _Subscription]]:
        """Yield the dictionaries that contain a subscription: by connection, by kind and by query."""
        yield self._of_caller.setdefault(one.caller, {})
        yield self._of_kind[one.kind]
        if one.kind is SubscriptionKind.LOGS:
            yield self._of_query.setdefault(one.query, {})

    # --- chain and pool events -------------------------------------------------------------------

    async def run(self, ready: Callable[[], None]) -> None:
        """Send chain and pool events until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(follow(self._chain_events, self, self._on_chain_event), name="subscriptions-chain")
            group.create_task(
                follow(self._pool_events, self, self._on_pool_event, self._concerns), name="subscriptions-pool"
            )
            ready()

    def _concerns(self, event: PoolEvent) -> bool:
        """Return whether any subscription needs this pool event. Called for thousands of events per second."""
        return bool(
            self._of_kind[
                SubscriptionKind.NEW_PENDING if isinstance(event, Added) else SubscriptionKind.DROPPED_PENDING
            ]
        )

    def _on_new_head(self, event: ChainEvent) -> None:
        """If there are few subscribers, send the new head already before the pool processes the block.

        Otherwise `_on_chain_event` sends the heads in order: if earlier notifications are unsent, if there are many
        subscribers or a subscriber of full blocks, or if the event has several blocks.
        """
        was_finished, self._unfinished = self._unfinished is None, event if self._by_id else None
        heads = self._of(SubscriptionKind.NEW_HEADS)
        self._last_id_at.append((event, self._last_id))
        is_quick = len(heads) > 0 and len(self._by_id) <= _MAX_INLINE
        if not (was_finished and is_quick) or isinstance(event, Reorged) or len(event.blocks) != 1:
            return
        if any(one.in_full for one in heads):
            return
        try:
            text = self._head(event.blocks[0], False)
        except NativeError:
            return  # `_on_chain_event` sends this head to the clients later
        for one in heads:
            one.send(text)
        self._heads_sent_for = event

    async def _on_chain_event(self, event: ChainEvent) -> None:
        removed, added = (event.removed, event.added) if isinstance(event, Reorged) else ((), event.blocks)
        for block in removed:
            await self._send_logs(block, True)
        last_id = self._newest_at(event)
        for block in added:
            if event is not self._heads_sent_for:
                await self._send_heads(block, last_id)
            await self._send_logs(block, False)
            await self._send_receipts(block)
        await self._send(self._of(SubscriptionKind.SYNCING), self._sync_status)
        if self._unfinished is event:
            self._unfinished = None

    def _newest_at(self, event: ChainEvent) -> int:
        """Return the id of the newest subscription when this event happened."""
        while self._last_id_at:
            happened, last_id = self._last_id_at.popleft()
            if happened is event:
                return last_id
        return self._last_id

    async def _send_heads(self, block: ChainBlock, last_id: int) -> None:
        """Send the block to each subscriber up to this id, with transaction hashes or objects."""
        heads = [one for one in self._of(SubscriptionKind.NEW_HEADS) if one.id <= last_id]
        await self._send([one for one in heads if not one.in_full], lambda: self._head(block, False))
        of_objects = [one for one in heads if one.in_full]
        if of_objects:
            text = await self._read(lambda: self._head(block, True))
            await self._send(of_objects, lambda: text)

    def _head(self, block: ChainBlock, in_full: bool) -> bytes:
        text = self._store.block_json(block.header.hash, in_full, self._with_total_difficulty)
        assert text is not None, "the block was just committed"
        return text

    async def _send_logs(self, block: ChainBlock, is_removed: bool) -> None:
        if block.header.header.logs_bloom == EMPTY_BLOOM:
            return
        waiting = [(query, list(found.values())) for query, found in self._of_query.items()]
        while waiting:
            queries = [query for query, _ in waiting[:MAX_QUERIES]]
            found = await self._read(partial(portion, self._store, block.header.hash, is_removed, queries))
            for text, (_, subscriptions) in zip(found, waiting, strict=False):
                logs = logs_of(text) if any(one.id in self._by_id for one in subscriptions) else ()
                for group in _grouped(logs):
                    await self._send_group(subscriptions, group)
            del waiting[: len(found)]

    async def _send_receipts(self, block: ChainBlock) -> None:
        """Send the receipts of a block as one list: all receipts, or the receipts of the named transactions."""
        subscriptions = self._of(SubscriptionKind.RECEIPTS)
        if not subscriptions or not block.body.transaction_count:
            return
        store, hash, with_reason = self._store, block.header.hash, self._shows_revert_reason
        of_all = [one for one in subscriptions if one.hashes is None]
        if of_all:
            text = await self._read(lambda: store.block_receipts_json(hash, with_reason) or b"[]")
            await self._send(of_all, lambda: text)
        choosing = [(one, one.hashes) for one in subscriptions if one.hashes is not None]
        if not choosing:
            return

        def read(place: int) -> bytes:
            return store.receipt_at_json(hash, place, with_reason) or b"null"

        named = await self._read(lambda: ReceiptSubscriptions(block.body.hashes_and_senders()[0], choosing, read))
        for places, some in named.wanted.items():
            await self._send(some, partial(named.text, places))

    async def _read(self, read: Callable[[], T]) -> T:
        """Run a database read in a worker thread. If the thread's queue is full, run the read on the event loop,
        because no notification may be lost.
        """
        try:
            return await self._lanes.read.run(read)
        except LaneFull:
            return read()

    async def _on_pool_event(self, event: PoolEvent) -> None:
        if not isinstance(event, Added):
            dropped = self._of(SubscriptionKind.DROPPED_PENDING)
            for item in event.transactions:
                await self._send(dropped, partial(encode_data, item.hash))
            return
        subscriptions = self._of(SubscriptionKind.NEW_PENDING)
        of_hashes = [one for one in subscriptions if not one.in_full]
        of_objects = [one for one in subscriptions if one.in_full]
        for item in event.transactions:
            await self._send(of_hashes, partial(encode_data, item.hash))
            await self._send(of_objects, item.transaction.json)

    def _of(self, kind: SubscriptionKind) -> list[_Subscription]:
        return list(self._of_kind[kind].values())

    async def _send(self, subscriptions: Iterable[_Subscription], render: Callable[[], bytes]) -> None:
        """Send one message to these subscriptions in batches; yield to the event loop between batches."""
        text: bytes | None = None
        for one in subscriptions:
            if text is None:
                text = render()
            self._sent += 1 + len(text) // _SHORT_BYTES
            if self._sent >= _BATCH_SIZE:
                await self._yield()
            if one.id in self._by_id:
                one.send(text)

    async def _send_group(self, subscriptions: Iterable[_Subscription], texts: Sequence[bytes]) -> None:
        """Send several messages to one subscription after the other, so that the event loop writes all messages to one
        client together.
        """
        weight = sum(1 + len(text) // _SHORT_BYTES for text in texts)
        for one in subscriptions:
            self._sent += weight
            if self._sent >= _BATCH_SIZE:
                await self._yield()
            if one.id in self._by_id:
                for text in texts:
                    one.send(text)

    async def _yield(self) -> None:
        """Let other tasks run after a batch of messages. If the node is working on its own block, wait until that work
        ends.
        """
        self._sent = 0
        await asyncio.sleep(0)
        while self._lanes.block_priority.is_on:  # noqa: ASYNC110  # the priority lasts only milliseconds
            await asyncio.sleep(_PRIORITY_WAIT_S)


def _grouped(texts: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield consecutive texts in groups that fit into the send buffer of a subscriber."""
    group, size = list[bytes](), 0
    for text in texts:
        if group and size + len(text) > _GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(text)
        size += len(text)
    if group:
        yield group


def _wants_objects(options: object) -> bool:
    """Decode `{"includeTransactions": bool}`, a bare boolean, or null."""
    if isinstance(options, Mapping):
        options = options.get("includeTransactions")
    return False if options is None else decode_boolean(options)

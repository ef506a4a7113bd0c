"""Subscriptions to private logs over WebSocket: `priv_subscribe(group, "logs", filter)` (privacy.md 9).

This service works like `Subscriptions`, but its events come from the private executor after the execution of a block.
The transport disconnects slow readers. If the event queue overflows, this service disconnects its subscribers, so that
no subscriber misses a log unnoticed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from ophion.enclave.encoding import base64_text
from ophion.errors import EnclaveError, RpcError
from ophion.native.privacy import PrivateLedger
from ophion.privacy.rpc_objects import log_objects
from ophion.rpc.errors import INVALID_REQUEST, SUBSCRIPTION_NOT_FOUND, TOO_MANY_SUBSCRIPTIONS
from ophion.rpc.schema.registry import Caller
from ophion.rpc.services.client_quotas import MEBIBYTE, ClientQuotas
from ophion.rpc.services.log_query import query_of
from ophion.rpc.services.private_logs import PrivateQuery, of_group
from ophion.rpc.services.subscriptions import Subscriber, follow
from ophion.runtime.thread_pools import Lane
from ophion.runtime.topic import Topic

if TYPE_CHECKING:
    from ophion.privacy.execution_events import ExecutorAdvanced
    from ophion.privacy.tenant_authorizer import TenantAuthorizer

log = logging.getLogger(__name__)

_MOST: Final = 16_384
_MAX_BYTES: Final = 8 * MEBIBYTE
_SHARE: Final = 4
_LOGS: Final = "logs"
_AT_A_TIME: Final = 64
"""Number of logs sent before the event loop runs other tasks."""


class _Subscription(Struct, frozen=True, eq=False):
    id: int
    caller: Subscriber
    query: PrivateQuery
    client: str
    tenant: bytes | None
    """Enclave key of the tenant that subscribed; None without multi-tenancy."""

    def send(self, log: bytes) -> None:
        self.caller.notify(
            b'{"jsonrpc":"2.0","method":"priv_subscription","params":{"subscription":"%#x","privacyGroupId":"%b",'
            b'"result":%b}}' % (self.id, base64_text(self.query.group).encode(), log)
        )


class PrivateSubscriptions:
    """All subscriptions to private logs."""

    name = "private subscriptions"

    def __init__(
        self, ledger: PrivateLedger, events: Topic[ExecutorAdvanced], lane: Lane, tenants: TenantAuthorizer
    ) -> None:
        """Create the service. `lane` must be a lane (worker thread) that only the node uses, so that no notification is
        refused.
        """
        self._ledger = ledger
        self._tenants = tenants
        self._lane = lane
        self._events = events
        self._by_id: dict[int, _Subscription] = {}
        self._of_caller: dict[Subscriber, dict[int, _Subscription]] = {}
        self._last_id = 0
        self._allowances = ClientQuotas(_MOST, _MOST // _SHARE, _MAX_BYTES, _MAX_BYTES // _SHARE)

    def __len__(self) -> int:
        return len(self._by_id)

    def subscribe(self, caller: Subscriber, group: bytes, kind: object, options: object) -> int:
        """Add a subscription of this connection; returns its id."""
        if kind != _LOGS:
            raise INVALID_REQUEST("kind: logs is expected")
        try:
            query = of_group(query_of(options), group)
        except RpcError as error:
            raise INVALID_REQUEST(None if error.data is None else str(error.data)) from None
        client = caller.client
        if not (self._allowances.fits_total(query.weight) and self._allowances.fits_client(client, query.weight)):
            raise TOO_MANY_SUBSCRIPTIONS()
        self._allowances.keep(client, query.weight)
        self._last_id += 1
        one = self._by_id[self._last_id] = _Subscription(self._last_id, caller, query, client, self._tenants.key())
        self._of_caller.setdefault(caller, {})[one.id] = one
        return self._last_id

    def unsubscribe(self, caller: Caller, group: bytes, subscription_id: int) -> bool:
        """End a subscription. Raises an error if this connection has no such subscription to the group."""
        found = self._by_id.get(subscription_id)
        if found is None or found.caller is not caller or found.query.group != group:
            raise SUBSCRIPTION_NOT_FOUND()
        self._remove(found)
        return True

    def callers(self) -> set[Subscriber]:
        """Return the connections that have subscriptions."""
        return set(self._of_caller)

    def drop(self, caller: Caller) -> None:
        """Remove the subscriptions of a closed connection."""
        for found in list(self._of_caller.get(caller, {}).values()):  # type: ignore[call-overload]  # the caller may have no subscriptions
            self._remove(found)

    def _remove(self, found: _Subscription) -> None:
        del self._by_id[found.id]
        del self._of_caller[found.caller][found.id]
        if not self._of_caller[found.caller]:
            del self._of_caller[found.caller]
        self._allowances.drop(found.client, found.query.weight)

    async def run(self, ready: Callable[[], None]) -> None:
        """Send notifications of private logs until cancelled."""
        ready()
        await follow(self._events, self, self._send)

    async def _is_allowed(self, one: _Subscription) -> bool:
        """Return whether the subscriber is known to be a member of the group. Ends the subscription of a former member.
        Called before each delivery.
        """
        try:
            is_member = one.tenant is None or await self._tenants.is_member(one.tenant, one.query.group)
        except EnclaveError as error:
            # the remote enclave is offline, so the membership is unknown: do not deliver, but keep the subscription
            log.warning("private log not delivered: membership is unknown subscription=%#x error=%s", one.id, error)
            return False
        if not is_member and self._by_id.get(one.id) is one:
            self._remove(one)
        return is_member

    async def _send(self, event: ExecutorAdvanced) -> None:
        for executed in event.executed:
            subscribers = [one for one in self._by_id.values() if one.query.group == executed.group]
            subscribers = [one for one in subscribers if await self._is_allowed(one)]
            if not subscribers:
                continue
            place = executed.place
            record = await self._lane.run(partial(self._ledger.receipt, place.block, place.hash))
            if record is None or not record.log_count:
                continue
            place = replace(place, index=record.index)
            for one in subscribers:
                start = 0
                while one.id in self._by_id:
                    found = record.matching(one.query.addresses, one.query.topics, start, _AT_A_TIME)
                    for log in log_objects(found, place, executed.is_removed):
                        one.send(orjson.dumps(log))
                    await asyncio.sleep(0)
                    if len(found) < _AT_A_TIME:
                        break
                    start = found[-1][0] + 1

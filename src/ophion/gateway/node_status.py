"""Reports which nodes of a network are online: `nodes.json`.

All requests within half a second share one round of liveness checks, so each node is checked at most twice a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import orjson

from ophion.gateway.backends import BackendNetwork, ServiceKind
from ophion.gateway.upstream import Upstream
from ophion.rpc.transport.http.messages import JSON, Response
from ophion.rpc.transport.replies import PendingReply

NO_STORE: Final = b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
_LIVENESS: Final = b"GET /liveness HTTP/1.1\r\nHost: %b\r\n\r\n"
_LIVENESS_TIMEOUT_S: Final = 1.0
_FRESH_S: Final = 0.5


class NodeStatus:
    """Checks which nodes of a network are online."""

    def __init__(
        self, site: BackendNetwork, services: Mapping[str, Upstream | None], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Create the liveness checks. `services` maps node names to JSON-RPC services; a node with None counts as
        offline.
        """
        self._site = site
        self._services = services
        self._loop = loop
        self._waiting: set[PendingReply[Response]] = set()
        self._open_checks: dict[str, PendingReply[Any]] = {}
        self._is_up: dict[str, bool] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last: Response | None = None
        self._last_at = 0.0

    def now(self) -> Response | PendingReply[Response]:
        """Return `nodes.json`: the last result if it is recent, otherwise a reply that is resolved after the checks."""
        if self._last is not None and self._loop.time() < self._last_at + _FRESH_S:
            return self._last
        pending: PendingReply[Response] = PendingReply(lambda: self._waiting.discard(pending))
        self._waiting.add(pending)
        if self._timer is None:
            self._check()
        return pending

    def close(self) -> None:
        """Cancel the running liveness checks."""
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        self._is_up = dict.fromkeys(self._services, False)
        self._timer = self._loop.call_later(_LIVENESS_TIMEOUT_S, self._publish)
        for name, service in self._services.items():
            reply = None if service is None else service.ask(_LIVENESS % service.host)
            if isinstance(reply, PendingReply):
                self._open_checks[name] = reply
                reply.deliver = partial(self._answered, name)
            else:
                # a node without JSON-RPC counts as offline. If `ask` refuses the request, because too many requests
                # wait, the node counts as online.
                self._is_up[name] = service is not None
        if not self._open_checks:
            self._timer.cancel()
            self._timer = self._loop.call_later(0, self._publish)

    def _answered(self, name: str, answer: object) -> None:
        self._is_up[name] = not (isinstance(answer, Response) and answer.status == 502)
        self._open_checks.pop(name, None)
        if not self._open_checks:
            self._publish()

    def _publish(self) -> None:
        """Answer all waiting requests, after all nodes have answered or the timeout has expired."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for pending in tuple(self._open_checks.values()):
            pending.abandon()
        self._open_checks.clear()
        self._last, self._last_at = Response(200, (self._text(),), JSON, NO_STORE), self._loop.time()
        waiting, self._waiting = self._waiting, set()
        for one in waiting:
            one.resolve(self._last)

    def _text(self) -> bytes:
        nodes = [
            {
                "name": node.name,
                "role": node.role,
                "path": f"{node.name}/",
                "up": self._is_up[node.name],
                "enode": node.enode,
            }
            for node in self._site.nodes
        ]
        site = self._site
        services = [kind.value for kind in ServiceKind if kind in site.nodes[0].places]
        network = {"network": site.network, "consensus": site.consensus, "services": services}
        tokens = {"token": site.needs_token, "socketToken": site.socket_needs_token}
        return orjson.dumps({**network, **tokens, "nodes": nodes})

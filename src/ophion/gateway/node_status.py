"""Who of a network answers at this moment: `nodes.json`.

One round of questions serves everybody who asks meanwhile and for a moment afterwards: however many look at the page,
nodes are asked twice a second at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import orjson

from ophion.gateway.backends import Kind, Site
from ophion.gateway.upstream import Upstream
from ophion.rpc.transport.http.messages import JSON, Response
from ophion.rpc.transport.replies import Pending

NO_STORE: Final = b"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
_LIVENESS: Final = b"GET /liveness HTTP/1.1\r\nHost: %b\r\n\r\n"
_ANSWER_S: Final = 1.0
_FRESH_S: Final = 0.5


class Roll:
    """The nodes of a site, and whether they answer."""

    def __init__(self, site: Site, services: Mapping[str, Upstream | None], loop: asyncio.AbstractEventLoop) -> None:
        """`services` has JSON-RPC of each node by name; None where it is off, which nobody can tell from a node that
        is down."""
        self._site = site
        self._services = services
        self._loop = loop
        self._waiting: set[Pending[Response]] = set()
        self._asked: dict[str, Pending[Any]] = {}
        self._is_up: dict[str, bool] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._last: Response | None = None
        self._last_at = 0.0

    def now(self) -> Response | Pending[Response]:
        """The roll, at once where it is fresh."""
        if self._last is not None and self._loop.time() < self._last_at + _FRESH_S:
            return self._last
        pending: Pending[Response] = Pending(lambda: self._waiting.discard(pending))
        self._waiting.add(pending)
        if self._timer is None:
            self._ask()
        return pending

    def close(self) -> None:
        """The service stops."""
        if self._timer is not None:
            self._timer.cancel()

    def _ask(self) -> None:
        self._is_up = dict.fromkeys(self._services, False)
        self._timer = self._loop.call_later(_ANSWER_S, self._tell)
        for name, service in self._services.items():
            reply = None if service is None else service.ask(_LIVENESS % service.host)
            if isinstance(reply, Pending):
                self._asked[name] = reply
                reply.deliver = partial(self._heard, name)
            else:
                self._is_up[name] = service is not None  # who has too much to do is there
        if not self._asked:
            self._timer.cancel()
            self._timer = self._loop.call_later(0, self._tell)

    def _heard(self, name: str, answer: object) -> None:
        self._is_up[name] = not (isinstance(answer, Response) and answer.status == 502)
        self._asked.pop(name, None)
        if not self._asked:
            self._tell()

    def _tell(self) -> None:
        """Everybody has answered, or had the time to."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for pending in tuple(self._asked.values()):
            pending.abandon()
        self._asked.clear()
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
        services = [kind.value for kind in Kind if kind in site.nodes[0].places]
        told = {"network": site.network, "consensus": site.consensus, "services": services}
        asks = {"token": site.needs_token, "socketToken": site.socket_needs_token}
        return orjson.dumps({**told, **asks, "nodes": nodes})

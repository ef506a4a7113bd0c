"""JSON-RPC over HTTP: the paths of its port (json-rpc.md 1.1, 1.8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ophion.rpc.endpoints.health import Health
from ophion.rpc.endpoints.landing_page import page
from ophion.rpc.endpoints.method_access import MethodAccess
from ophion.rpc.services.context import Endpoint
from ophion.rpc.transport.http.messages import JSON, Request, Response
from ophion.rpc.transport.http.policy import Result, TokenGuard

_UP: Final = Response(200, (b'{"status":"UP"}',), JSON)
_DOWN: Final = Response(503, (b'{"status":"DOWN"}',), JSON)


class RpcApplication:
    """Passes `POST /` to the dispatcher with the permissions of the client's token. Answers `GET /`, health checks and
    logins.
    """

    def __init__(
        self, guarded: MethodAccess, health: Health, endpoints: Callable[[], Mapping[str, Endpoint]] = dict
    ) -> None:
        authenticator = guarded.authenticator
        self.plain: Callable[..., Result] | None = guarded.dispatcher.handle if authenticator is None else None
        self.token_guard: TokenGuard | None = authenticator
        self.close = guarded.close
        self._auth = guarded.auth
        self._health = health
        self._endpoints = endpoints

    def respond(self, request: Request) -> Result:
        """Answer every request except API calls (`POST /`)."""
        if request.path == b"/liveness" and request.method == b"GET":
            return _UP
        if request.path == b"/readiness" and request.method == b"GET":
            return _UP if self._is_ready(request) else _DOWN
        if request.path == b"/login" and request.method == b"POST":
            if self._auth is not None:
                return self._auth.login(request)
            return Response(400, reason=b"Authentication not enabled")
        if request.path != b"/":
            return Response(404)
        if request.method == b"GET":
            return page(request, self._endpoints()) if request.wants_html else Response(201)
        return Response(405, headers=b"Allow: GET, POST, OPTIONS\r\n")

    def _is_ready(self, request: Request) -> bool:
        try:
            fields = request.fields()
            return self._health.is_ready(
                min_peers=int(fields.get("minPeers", ["1"])[-1]),
                max_blocks_behind=int(fields.get("maxBlocksBehind", ["2"])[-1]),
                checks_vote_store=fields.get("voteStore", ["true"])[-1] != "false",
            )
        except ValueError:
            return False

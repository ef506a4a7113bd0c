"""JSON-RPC over WebSocket: passes messages to the dispatcher and logins to `AuthSetup`."""

from __future__ import annotations

from collections.abc import Callable

from ophion.rpc.endpoints.method_access import MethodAccess
from ophion.rpc.schema.registry import Caller
from ophion.rpc.transport.http.policy import Application
from ophion.rpc.transport.replies import Reply
from ophion.rpc.transport.websocket.policy import ConnectionGuard


class RpcMessageHandler:
    """Answers the messages of one service, with authentication if tokens are required."""

    def __init__(self, guarded: MethodAccess) -> None:
        self.handle: Callable[[bytes, Caller | None], Reply] = guarded.dispatcher.handle
        """Answers one message when no token is required."""
        self.token_guard: ConnectionGuard | None = guarded.authenticator
        self.close = guarded.close
        self.login: Application | None = None
        if guarded.auth is not None:
            # lazy import: a node without tokens does not need this module
            from ophion.rpc.auth.auth_setup import LoginApplication

            self.login = LoginApplication(guarded.auth)

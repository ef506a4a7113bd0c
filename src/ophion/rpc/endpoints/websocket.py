"""JSON-RPC over WebSocket: messages to the dispatcher, logins to the door."""

from __future__ import annotations

from collections.abc import Callable

from ophion.rpc.endpoints.method_access import MethodAccess
from ophion.rpc.schema.registry import Caller
from ophion.rpc.transport.http.policy import Application
from ophion.rpc.transport.replies import Reply
from ophion.rpc.transport.websocket.policy import ConnectionGuard


class RpcConversations:
    """What is said over the sockets of one service; with a door, by those who have a token."""

    def __init__(self, guarded: MethodAccess) -> None:
        self.handle: Callable[[bytes, Caller | None], Reply] = guarded.dispatcher.handle
        """Answers one message, where no token is needed."""
        self.token_guard: ConnectionGuard | None = guarded.authenticator
        self.close = guarded.close
        self.login: Application | None = None
        if guarded.auth is not None:
            # loaded already where there is a door, and by nobody else
            from ophion.rpc.auth.auth_setup import LoginApplication

            self.login = LoginApplication(guarded.auth)

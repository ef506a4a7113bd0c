"""JSON-RPC over WebSocket: messages to the dispatcher, logins to the door."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.language.registry import Caller
from ophion.rpc.transport.http.policy import Application
from ophion.rpc.transport.replies import Reply
from ophion.rpc.transport.websocket.policy import ConnectionGuard

if TYPE_CHECKING:
    from ophion.rpc.auth.door import Door
    from ophion.rpc.auth.gate import Gate


class RpcConversations:
    """What is said over the sockets of one service; with a door, by those who have a token."""

    def __init__(self, dispatcher: Dispatcher, door: Door | None = None, gate: Gate | None = None) -> None:
        self.handle: Callable[[bytes, Caller | None], Reply] = dispatcher.handle
        """Answers one message, where no token is needed."""
        self.token_guard: ConnectionGuard | None = gate
        self.login: Application | None = None
        self._dispatcher = dispatcher
        self._door = door
        self._gate = gate
        if door is not None:
            from ophion.rpc.auth.door import LoginApplication

            self.login = LoginApplication(door)

    def close(self) -> None:
        """Give up what is still waiting."""
        self._dispatcher.close()
        if self._gate is not None:
            self._gate.close()
        if self._door is not None:
            self._door.close()

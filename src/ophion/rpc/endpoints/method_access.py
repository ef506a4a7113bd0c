"""The methods of one port, and who may call them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ophion.rpc.dispatch.dispatcher import Dispatcher

if TYPE_CHECKING:
    from ophion.rpc.auth.auth_setup import AuthSetup
    from ophion.rpc.auth.authenticator import Gate


class MethodAccess(Struct, frozen=True):
    """A dispatcher, and where a token is needed: who gives them and who looks at them."""

    dispatcher: Dispatcher
    door: AuthSetup | None = None
    gate: Gate | None = None

    def close(self) -> None:
        """Give up what is still waiting."""
        self.dispatcher.close()
        if self.gate is not None:
            self.gate.close()
        if self.door is not None:
            self.door.close()

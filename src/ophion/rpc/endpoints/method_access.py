"""The methods of one port, and who may call them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ophion.rpc.dispatch.dispatcher import Dispatcher

if TYPE_CHECKING:
    from ophion.rpc.auth.auth_setup import AuthSetup
    from ophion.rpc.auth.authenticator import Authenticator


class MethodAccess(Struct, frozen=True):
    """A dispatcher, and where a token is needed: who gives them and who looks at them."""

    dispatcher: Dispatcher
    auth: AuthSetup | None = None
    authenticator: Authenticator | None = None

    def close(self) -> None:
        """Give up what is still waiting."""
        self.dispatcher.close()
        if self.authenticator is not None:
            self.authenticator.close()
        if self.auth is not None:
            self.auth.close()

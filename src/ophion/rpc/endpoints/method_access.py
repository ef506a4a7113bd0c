"""The methods of one port and their authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ophion.rpc.dispatch.dispatcher import Dispatcher

if TYPE_CHECKING:
    from ophion.rpc.auth.auth_setup import AuthSetup
    from ophion.rpc.auth.authenticator import Authenticator


class MethodAccess(Struct, frozen=True):
    """The dispatcher of one port and, if tokens are required, its `AuthSetup` and authenticator."""

    dispatcher: Dispatcher
    auth: AuthSetup | None = None
    authenticator: Authenticator | None = None

    def close(self) -> None:
        """Cancel waiting requests and stop logins, because the service stops."""
        self.dispatcher.close()
        if self.authenticator is not None:
            self.authenticator.close()
        if self.auth is not None:
            self.auth.close()

"""Builds authenticators and the login from the settings when the node starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ophion.errors import ConfigError
from ophion.rpc.auth.authenticator import Authenticator
from ophion.rpc.auth.credentials import read_users
from ophion.rpc.auth.login import Login
from ophion.rpc.auth.revocation import UserRevocations
from ophion.rpc.auth.settings import AuthSettings, JwtAlgorithm
from ophion.rpc.auth.tokens import TokenIssuer, TokenReader, reader_from_file
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.schema.registry import MethodTable
from ophion.rpc.transport.http.messages import TEXT, Request, Response
from ophion.rpc.transport.http.policy import Result

_NO_LOGIN: Final = Response(400, reason=b"Authentication not enabled")
_NOT_HTTP: Final = Response(400, (b"Websocket endpoint can't handle HTTP requests",), TEXT)


class AuthSetup:
    """The token issuer and login of a service. JSON-RPC over HTTP and GraphQL share one `AuthSetup`."""

    def __init__(self, settings: AuthSettings) -> None:
        self._settings = settings
        self._login: Login | None = None
        self._reader: TokenReader
        if settings.public_key_file is not None:
            self._reader = reader_from_file(settings.public_key_file, settings.algorithm)
        elif settings.credentials_file is not None:
            self._reader = issuer = TokenIssuer(UserRevocations())
            self._login = Login(settings.credentials_file, issuer, settings.clock)
        else:
            raise ConfigError("Authentication needs a credentials file or the public key of an issuer.")

    def authenticator(
        self,
        table: MethodTable | None,
        loop: asyncio.AbstractEventLoop,
        limits: DispatchLimits | None = None,
        make_dispatcher: Callable[..., Dispatcher] = Dispatcher,
    ) -> Authenticator:
        """Return an authenticator for the JSON-RPC methods of `table`. `table` is None for GraphQL, which has no
        methods.
        """
        settings = self._settings
        if self._login is not None:
            self._login.watch(loop)
        methods = MethodTable.of({}) if table is None else table
        return Authenticator(
            self._reader,
            methods,
            loop,
            limits or DispatchLimits(),
            settings.clock,
            settings.exempt_methods,
            make_dispatcher,
        )

    def login(self, request: Request) -> Result:
        """Answer `POST /login`. The status is 400 if an external issuer signs the tokens, because this node then has no
        logins.
        """
        return _NO_LOGIN if self._login is None else self._login.respond(request.body, request.address)

    def close(self) -> None:
        """Stop the login thread. Each service that uses this setup calls `close` when the service stops."""
        if self._login is not None:
            self._login.close()


class LoginApplication:
    """Answers plain HTTP requests on the WebSocket port. Accepts only logins."""

    plain: Callable[..., Result] | None = None

    def __init__(self, auth: AuthSetup) -> None:
        self._auth = auth

    def respond(self, request: Request) -> Result:
        """Answer `POST /login`; refuse every other request."""
        if request.method == b"POST" and request.path == b"/login":
            return self._auth.login(request)
        return _NOT_HTTP

    def close(self) -> None:
        """Do nothing, because the service closes the `AuthSetup`."""


def check(settings: AuthSettings) -> None:
    """Check the algorithm, and the key file or the credentials file, before the node starts. Raises `OphionError` with
    a one-line reason.
    """
    if settings.public_key_file is not None:
        reader_from_file(settings.public_key_file, settings.algorithm)
    elif settings.credentials_file is not None:
        read_users(settings.credentials_file)
    if settings.public_key_file is None and settings.algorithm is not JwtAlgorithm.RS256:
        raise ConfigError("A JWT algorithm can be chosen for external public keys only; this node signs with RS256.")

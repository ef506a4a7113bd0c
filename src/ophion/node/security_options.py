"""Options of who may call: tokens and TLS, for each of the two JSON-RPC services.

Besides what the original client had (a credentials file), tokens may come from an issuer elsewhere whose public key is
given. Both are looked at before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ophion.errors import OphionError
from ophion.rpc.auth.settings import AuthSettings, JwtAlgorithm
from ophion.rpc.tls import TlsSettings, server_context
from ophion.runtime.options import option


@dataclass(frozen=True, slots=True)
class HttpSecurityConfig:
    """Authentication and TLS of JSON-RPC over HTTP."""

    authentication_enabled: bool = option(
        "--rpc-http-authentication-enabled", default=False, needs="--rpc-http-enabled", help="Ask clients for a token."
    )
    credentials_file: Path | None = option(
        "--rpc-http-authentication-credentials-file",
        default=None,
        needs="--rpc-http-enabled",
        help="TOML file with users, password hashes and permissions; read again at each login.",
    )
    public_key_file: Path | None = option(
        "--rpc-http-authentication-jwt-public-key-file",
        default=None,
        needs="--rpc-http-authentication-enabled",
        help="Public key (PEM) of an issuer of tokens elsewhere; then nobody logs in here.",
    )
    algorithm: JwtAlgorithm = option(
        "--rpc-http-authentication-jwt-algorithm",
        default=JwtAlgorithm.RS256,
        needs="--rpc-http-authentication-enabled",
        help="How tokens of that issuer are signed; HS256 means that the key file holds a shared secret.",
    )
    open_methods: tuple[str, ...] = option(
        "--rpc-http-api-methods-no-auth",
        "--rpc-http-api-method-no-auth",
        default=(),
        needs="--rpc-http-authentication-enabled",
        help="Methods that need no token.",
    )
    tls_enabled: bool = option(
        "--rpc-http-tls-enabled", default=False, needs="--rpc-http-enabled", help="Speak HTTPS only."
    )
    keystore_file: Path | None = option(
        "--rpc-http-tls-keystore-file",
        default=None,
        needs="--rpc-http-tls-enabled",
        help="Key and certificate of this service, as PKCS #12 or PEM.",
    )
    keystore_password_file: Path | None = option(
        "--rpc-http-tls-keystore-password-file",
        default=None,
        needs="--rpc-http-tls-enabled",
        help="File whose first line is the password of the key store.",
    )
    client_auth_enabled: bool = option(
        "--rpc-http-tls-client-auth-enabled",
        default=False,
        needs="--rpc-http-tls-enabled",
        help="Ask clients for a certificate.",
    )
    truststore_file: Path | None = option(
        "--rpc-http-tls-truststore-file",
        default=None,
        needs="--rpc-http-tls-client-auth-enabled",
        help="Certificates (PEM) of clients, or of authorities that sign them.",
    )

    def problems(self) -> Iterator[str]:
        auth, tls = self.auth(), self.tls()
        if self.authentication_enabled and self.credentials_file is None and self.public_key_file is None:
            yield "Unable to authenticate JSON-RPC HTTP endpoint without a supplied credentials file"
        elif auth is not None:
            # it loads cryptography, which nodes without tokens are spared
            from ophion.rpc.auth.door import check

            try:
                check(auth)
            except OphionError as error:
                yield str(error)
        if tls is not None:
            try:
                server_context(tls)
            except OphionError as error:
                yield str(error)

    def auth(self) -> AuthSettings | None:
        """How tokens are asked for; None where none is needed."""
        if not self.authentication_enabled:
            return None
        return AuthSettings(self.credentials_file, self.public_key_file, self.algorithm, self.open_methods)

    def tls(self) -> TlsSettings | None:
        """How the service encrypts; None where it does not."""
        if not self.tls_enabled:
            return None
        return TlsSettings(
            "--rpc-http-tls-keystore-file",
            self.keystore_file,
            self.keystore_password_file,
            self.client_auth_enabled,
            self.truststore_file,
        )


@dataclass(frozen=True, slots=True)
class WebSocketSecurityConfig:
    """Authentication and TLS of JSON-RPC over WebSocket."""

    authentication_enabled: bool = option(
        "--rpc-ws-authentication-enabled", default=False, needs="--rpc-ws-enabled", help="Ask clients for a token."
    )
    credentials_file: Path | None = option(
        "--rpc-ws-authentication-credentials-file",
        default=None,
        needs="--rpc-ws-enabled",
        help="TOML file with users, password hashes and permissions; read again at each login.",
    )
    public_key_file: Path | None = option(
        "--rpc-ws-authentication-jwt-public-key-file",
        default=None,
        needs="--rpc-ws-authentication-enabled",
        help="Public key (PEM) of an issuer of tokens elsewhere; then nobody logs in here.",
    )
    algorithm: JwtAlgorithm = option(
        "--rpc-ws-authentication-jwt-algorithm",
        default=JwtAlgorithm.RS256,
        needs="--rpc-ws-authentication-enabled",
        help="How tokens of that issuer are signed; HS256 means that the key file holds a shared secret.",
    )
    open_methods: tuple[str, ...] = option(
        "--rpc-ws-api-methods-no-auth",
        "--rpc-ws-api-method-no-auth",
        default=(),
        needs="--rpc-ws-authentication-enabled",
        help="Methods that need no token.",
    )
    tls_enabled: bool = option(
        "--rpc-ws-ssl-enabled", default=False, needs="--rpc-ws-enabled", help="Speak WebSocket over TLS only."
    )
    keystore_file: Path | None = option(
        "--rpc-ws-ssl-keystore-file",
        default=None,
        needs="--rpc-ws-ssl-enabled",
        help="Key and certificate of this service, as PKCS #12 or PEM.",
    )
    keystore_password_file: Path | None = option(
        "--rpc-ws-ssl-keystore-password-file",
        default=None,
        needs="--rpc-ws-ssl-enabled",
        help="File whose first line is the password of the key store.",
    )
    client_auth_enabled: bool = option(
        "--rpc-ws-ssl-client-auth-enabled",
        default=False,
        needs="--rpc-ws-ssl-enabled",
        help="Ask clients for a certificate.",
    )
    truststore_file: Path | None = option(
        "--rpc-ws-ssl-truststore-file",
        default=None,
        needs="--rpc-ws-ssl-client-auth-enabled",
        help="Certificates (PEM) of clients, or of authorities that sign them.",
    )

    def problems(self) -> Iterator[str]:
        auth, tls = self.auth(), self.tls()
        if self.authentication_enabled and self.credentials_file is None and self.public_key_file is None:
            yield "Unable to authenticate JSON-RPC WebSocket endpoint without a supplied credentials file"
        elif auth is not None:
            # it loads cryptography, which nodes without tokens are spared
            from ophion.rpc.auth.door import check

            try:
                check(auth)
            except OphionError as error:
                yield str(error)
        if tls is not None:
            try:
                server_context(tls)
            except OphionError as error:
                yield str(error)

    def auth(self) -> AuthSettings | None:
        """How tokens are asked for; None where none is needed."""
        if not self.authentication_enabled:
            return None
        return AuthSettings(self.credentials_file, self.public_key_file, self.algorithm, self.open_methods)

    def tls(self) -> TlsSettings | None:
        """How the service encrypts; None where it does not."""
        if not self.tls_enabled:
            return None
        return TlsSettings(
            "--rpc-ws-ssl-keystore-file",
            self.keystore_file,
            self.keystore_password_file,
            self.client_auth_enabled,
            self.truststore_file,
        )

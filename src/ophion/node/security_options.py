"""Options of authentication and TLS.

Tokens come from this node (a credentials file, as in Pantheon 1.2) or from an external issuer with a public key. All
files are checked before the node starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ophion.errors import OphionError
from ophion.rpc.auth.settings import AuthSettings, JwtAlgorithm
from ophion.runtime.options import Options, option

if TYPE_CHECKING:
    from ophion.rpc.tls.certificates import TlsSettings


class AuthConfig(Options):
    """Authentication of one service; `label` is the service's name in messages."""

    label: ClassVar[str]

    enabled: bool = option(
        "--{service}-authentication-enabled", default=False, help="Require a token from clients.{also}"
    )
    credentials_file: Path | None = option(
        "--{service}-authentication-credentials-file",
        default=None,
        help="TOML file with users, password hashes and permissions; read again at each login.",
    )
    public_key_file: Path | None = option(
        "--{service}-authentication-jwt-public-key-file",
        default=None,
        needs="--{service}-authentication-enabled",
        help="Public key (PEM) of an external token issuer; replaces logins at this node.",
    )
    algorithm: JwtAlgorithm = option(
        "--{service}-authentication-jwt-algorithm",
        default=JwtAlgorithm.RS256,
        needs="--{service}-authentication-enabled",
        help="Signature algorithm of that issuer; with HS256 the key file holds a shared secret.",
    )
    open_methods: tuple[str, ...] = option(
        "--{service}-api-methods-no-auth",
        "--{service}-api-method-no-auth",
        default=(),
        needs="--{service}-authentication-enabled",
        help="Methods that need no token.",
    )

    def problems(self) -> Iterator[str]:
        settings = self.settings()
        if settings is None:
            return
        if self.credentials_file is None and self.public_key_file is None:
            yield f"Unable to authenticate JSON-RPC {self.label} endpoint without a supplied credentials file"
            return
        # lazy import: the package cryptography is slow to import
        from ophion.rpc.auth.auth_setup import check

        try:
            check(settings)
        except OphionError as error:
            yield str(error)

    def warnings(self) -> Iterator[str]:
        if not self.enabled or self.credentials_file is None or self.public_key_file is not None:
            return
        from ophion.rpc.auth.credentials import login_warnings, read_users

        try:
            found = login_warnings(read_users(self.credentials_file))
        except OphionError:
            return  # `problems` has reported the unreadable file already
        for doubt in found:
            yield f"{self.credentials_file}: {doubt}."

    def settings(self) -> AuthSettings | None:
        """Return the authentication settings, or None when authentication is off."""
        if not self.enabled:
            return None
        return AuthSettings(self.credentials_file, self.public_key_file, self.algorithm, self.open_methods)


class HttpAuthConfig(AuthConfig):
    """Authentication of JSON-RPC over HTTP."""

    label = "HTTP"
    names: ClassVar[Mapping[str, str]] = {"service": "rpc-http", "also": " GraphQL requires it too."}


class WebSocketAuthConfig(AuthConfig):
    """Authentication of JSON-RPC over WebSocket."""

    label = "WebSocket"
    names: ClassVar[Mapping[str, str]] = {"service": "rpc-ws", "also": ""}


class TlsConfig(Options):
    """TLS of one service: server certificate, and trusted client certificates."""

    names: ClassVar[Mapping[str, str]]

    enabled: bool = option(
        "--{tls}-enabled", default=False, needs="--{service}-enabled", help="Accept TLS connections only."
    )
    keystore_file: Path | None = option(
        "--{tls}-keystore-file",
        default=None,
        needs="--{tls}-enabled",
        help="Key and certificate of this service, as PKCS #12 or PEM.",
    )
    keystore_password_file: Path | None = option(
        "--{tls}-keystore-password-file",
        default=None,
        needs="--{tls}-enabled",
        help="File whose first line is the password of the key store.",
    )
    client_auth_enabled: bool = option(
        "--{client-auth}-enabled", default=False, needs="--{tls}-enabled", help="Require a certificate from clients."
    )
    truststore_file: Path | None = option(
        "--{tls}-truststore-file",
        default=None,
        needs="--{client-auth}-enabled",
        help="Certificates (PEM) of clients, or of authorities that sign them.",
    )
    known_clients_file: Path | None = option(
        "--{tls}-known-clients-file",
        default=None,
        needs="--{client-auth}-enabled",
        help="Accepted client certificates: lines of common name and SHA-256 fingerprint in hex.",
    )
    ca_clients_enabled: bool = option(
        "--{tls}-ca-clients-enabled",
        default=False,
        needs="--{client-auth}-enabled",
        help="Also accept certificates signed by authorities: of the trust store or, without a trust store, of the "
        "system.",
    )

    def problems(self) -> Iterator[str]:
        settings = self.settings()
        if settings is not None:
            # lazy import: few nodes speak TLS
            from ophion.rpc.tls.certificates import server_context

            try:
                server_context(settings)
            except OphionError as error:
                yield str(error)

    def settings(self) -> TlsSettings | None:
        """Return the TLS settings, or None when TLS is off."""
        if not self.enabled:
            return None
        # lazy import: few nodes speak TLS
        from ophion.rpc.tls.certificates import TlsSettings

        return TlsSettings(
            f"--{self.names['tls']}-keystore-file",
            self.keystore_file,
            self.keystore_password_file,
            self.client_auth_enabled,
            self.truststore_file,
            self.known_clients_file,
            self.ca_clients_enabled,
        )


def _tls_names(service: str, tls: str, client_auth: str | None = None) -> Mapping[str, str]:
    return {"service": service, "tls": tls, "client-auth": client_auth or f"{tls}-client-auth"}


class HttpTlsConfig(TlsConfig):
    """TLS of JSON-RPC over HTTP."""

    names = _tls_names("rpc-http", "rpc-http-tls")


class WebSocketTlsConfig(TlsConfig):
    """TLS of JSON-RPC over WebSocket."""

    names = _tls_names("rpc-ws", "rpc-ws-ssl")


class GraphqlTlsConfig(TlsConfig):
    """TLS of GraphQL: the options of `TlsConfig`, with names that begin with `--graphql-tls` or `--graphql-mtls`."""

    names = _tls_names("graphql-http", "graphql-tls", "graphql-mtls")


class MetricsTlsConfig(TlsConfig):
    """TLS of metrics: the options of `TlsConfig`, with names that begin with `--metrics-tls`."""

    names = _tls_names("metrics", "metrics-tls")

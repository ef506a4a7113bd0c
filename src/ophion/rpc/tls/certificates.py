"""Makes an `ssl.SSLContext` from a key store.

The standard library reads PEM files only. So a PKCS #12 store is written to a temporary file: encrypted, readable by
this user only, and deleted immediately after loading.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from ophion.errors import ConfigError
from ophion.runtime.operator_files import content_of, refuse_unusual

if TYPE_CHECKING:
    import ssl


class TlsSettings(Struct, frozen=True):
    """Key store, trust list and passwords of one service."""

    option: str
    """The option that names the key store, for error messages."""
    keystore_file: Path | None
    password_file: Path | None = None
    asks_clients: bool = False
    """Whether clients must present a certificate."""
    truststore_file: Path | None = None
    known_clients_file: Path | None = None
    accepts_system_authorities: bool = False
    """Whether a client certificate is accepted if an authority signed it that the system trusts. A trust store takes
    the place of the system's list.
    """

    @property
    def has_accepted_clients(self) -> bool:
        """Whether any client certificate can be accepted."""
        return bool(self.truststore_file or self.known_clients_file or self.accepts_system_authorities)


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the context of a listening socket. Raises `ConfigError` with a one-line reason."""
    import ssl

    if settings.keystore_file is None:
        raise ConfigError(f"TLS needs a key store: {settings.option} is missing.")
    if settings.asks_clients and not settings.has_accepted_clients:
        store, known, authorities = (
            settings.option.replace("keystore-file", other)
            for other in ("truststore-file", "known-clients-file", "ca-clients-enabled")
        )
        raise ConfigError(f"No client certificate could be accepted: give {store}, {known} or {authorities}.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # forbid renegotiation: otherwise a client could repeat the handshake of TLS 1.2 on one connection, past the limit
    # on pending handshakes
    context.options |= ssl.OP_NO_RENEGOTIATION
    _load_key(context, settings.keystore_file, settings.password_file)
    if settings.asks_clients:
        _accept_clients(context, settings)
    return context


def _accept_clients(context: ssl.SSLContext, settings: TlsSettings) -> None:
    import ssl

    context.verify_mode = ssl.CERT_REQUIRED
    # accept a client certificate that is itself in the trust list, even if its issuer is not in the list
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    if settings.truststore_file is not None:
        with _using(settings.truststore_file):
            refuse_unusual(settings.truststore_file)
            context.load_verify_locations(settings.truststore_file)
    elif settings.accepts_system_authorities:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    if settings.known_clients_file is not None:
        from ophion.rpc.tls.known_clients import accept_known_clients, read_known_clients

        accept_known_clients(context, read_known_clients(settings.known_clients_file))


def client_context(settings: TlsSettings, is_pinned: bool) -> ssl.SSLContext:
    """Return the context of a TLS client. With `is_pinned`, the context accepts any server certificate, and the caller
    compares the certificate with the pinned one.
    """
    import ssl

    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if is_pinned:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.keystore_file is not None:
        _load_key(context, settings.keystore_file, settings.password_file)
    return context


@contextmanager
def _using(path: Path) -> Iterator[None]:
    """Turn an error that occurs while a file is used into a `ConfigError` that names the file."""
    try:
        yield
    except (OSError, ValueError) as error:  # this tuple includes ssl.SSLError, which is an OSError
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"Unable to use the TLS files ({path}): {reason}") from None


def _load_key(context: ssl.SSLContext, keystore: Path, password_file: Path | None) -> None:
    password = None
    if password_file is not None:
        with _using(password_file):
            password = _password(password_file)
    with _using(keystore):
        try:
            _load(context, keystore, password)
        except ValueError as error:
            raise ConfigError(f"Unable to read the key store {keystore}: {error}") from None


def _password(path: Path) -> bytes:
    lines = content_of(path).splitlines()
    return lines[0] if lines else b""


def _load(context: ssl.SSLContext, path: Path, password: bytes | None) -> None:
    content = content_of(path)
    if b"-----BEGIN" in content:
        refuse_unusual(path)
        # pass empty bytes, because with None OpenSSL would prompt for a password
        context.load_cert_chain(path, password=password or b"")
        return
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12

    key, certificate, others = pkcs12.load_key_and_certificates(content, password)
    if key is None or certificate is None:
        raise ValueError("it must contain a private key and its certificate")
    secret = password or b"ophion"
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(secret),
    )
    pem += b"".join(one.public_bytes(serialization.Encoding.PEM) for one in (certificate, *others))
    import tempfile

    handle, name = tempfile.mkstemp()  # mkstemp makes a file that only this user can read
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
        context.load_cert_chain(name, password=secret)
    finally:
        Path(name).unlink()

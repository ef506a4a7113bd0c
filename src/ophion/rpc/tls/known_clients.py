"""Accepts TLS clients by the SHA-256 fingerprint of their certificates, as Besu's file of known clients does.

Python verifies a client certificate only against trusted certificates, and the file has only fingerprints. So this
module reads the certificate in the client's Certificate message, before OpenSSL verifies it. A certificate that the
file lists becomes a trusted certificate. OpenSSL then verifies the certificate, its validity and the client's signature
as usual. OpenSSL refuses every other certificate with an alert.

A listed certificate may be able to sign other certificates; `openssl req -x509` makes such certificates. A certificate
that is not listed, but signed by a listed one, is refused at the end of the handshake.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from ophion.errors import ConfigError
from ophion.runtime.operator_files import content_of

_HANDSHAKE: Final = 22
_CERTIFICATE: Final = 11
_HEADER_BYTES: Final = 4
"""Type and length of a handshake message."""
_LENGTH_BYTES: Final = 3
"""Size in bytes of the length before a certificate, and of the length before a list of certificates."""
_FINGERPRINT_BYTES: Final = 32
_MAX_VERIFIED: Final = 20 * 1024
"""Limit of remembered certificates: the number of sessions that OpenSSL caches."""
_DER: Final = 2
"""Value of the encoding argument of `_ssl.Certificate.public_bytes` that selects DER."""

Fingerprints = Mapping[bytes, frozenset[str]]
"""Common names by SHA-256 fingerprint."""


def read_known_clients(path: Path) -> Fingerprints:
    """Read lines of a common name and a fingerprint. If a name has several lines, the last one counts, as in Besu.

    Raises `ConfigError` with the number of the line.
    """
    try:
        lines = content_of(path).decode().splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"Unable to read the known clients file {path}: {reason}") from None
    by_name: dict[str, bytes] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            name, text = words
            fingerprint = bytes.fromhex(text.replace(":", "").removeprefix("0x"))
            if len(fingerprint) != _FINGERPRINT_BYTES:
                raise ValueError
        except ValueError:
            raise ConfigError(
                f"{path}, line {number}: expected a common name and the SHA-256 fingerprint of its certificate in hex."
            ) from None
        by_name[name] = fingerprint
    names: dict[bytes, set[str]] = {}
    for name, fingerprint in by_name.items():
        names.setdefault(fingerprint, set()).add(name)
    return {fingerprint: frozenset(found) for fingerprint, found in names.items()}


def accept_known_clients(context: ssl.SSLContext, fingerprints: Fingerprints) -> None:
    """Let a server context accept the listed certificates, in addition to the certificates that it already trusts."""
    clients = _KnownClients(context, fingerprints)

    class Connection(_Connection):
        known_clients = clients

    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    # disable session tickets, because a client that resumes a session does not send its certificate
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.sslobject_class = Connection
    # bypass the property of `ssl.SSLContext`, which makes five enumeration members for each TLS record
    cast(Any, ssl.SSLContext.__base__)._msg_callback.__set__(context, clients.message)


class _KnownClients:
    def __init__(self, context: ssl.SSLContext, fingerprints: Fingerprints) -> None:
        self._context = context
        self._fingerprints = fingerprints
        self._trusted_before = {_fingerprint(one) for one in context.get_ca_certs(binary_form=True)}
        self._added: set[bytes] = set()
        self._verified: dict[bytes, None] = {}
        """Fingerprints of accepted certificates that are not listed, oldest first. A client with any other unlisted
        certificate may not resume a session.
        """

    def message(
        self, connection: ssl.SSLObject, direction: str, version: int, content: int, kind: int, message: bytes
    ) -> None:
        """If the message is a Certificate message with a listed certificate, trust this certificate. OpenSSL calls this
        method for each TLS message.
        """
        if content != _HANDSHAKE or kind != _CERTIFICATE or direction != "read":
            return
        certificate = first_certificate(message, version == ssl.TLSVersion.TLSv1_3)
        fingerprint = _fingerprint(certificate)
        if fingerprint in self._added or fingerprint not in self._fingerprints:
            return
        # read the name only after the fingerprint has matched, so that no certificate of an unknown client is parsed
        if common_name(certificate) in self._fingerprints[fingerprint]:
            self._context.load_verify_locations(cadata=certificate)
            self._added.add(fingerprint)

    def refusal(self, leaf: bytes | None, chain: list[bytes] | None) -> str | None:
        """Return why a client is not accepted after OpenSSL has verified it, or None.

        `chain` is the verified chain; it is None if the session was resumed.
        """
        fingerprint = _fingerprint(leaf or b"")
        if fingerprint in self._added:
            return None
        if chain is None:
            return None if fingerprint in self._verified else "the resumed session belongs to no accepted client"
        if self._added.intersection(map(_fingerprint, chain[1:])) - self._trusted_before:
            return "not in the list of known clients, but signed by one of them"
        self._verified.pop(fingerprint, None)
        self._verified[fingerprint] = None
        if len(self._verified) > _MAX_VERIFIED:
            del self._verified[next(iter(self._verified))]
        return None


class _Connection(ssl.SSLObject):
    """A connection whose handshake succeeds only if its chain does not lead to a known client.

    The check runs before the last messages of the handshake are sent.
    """

    known_clients: _KnownClients

    def do_handshake(self) -> None:
        super().do_handshake()
        verified = cast(Any, self)._sslobj.get_verified_chain()
        chain = None if verified is None else [one.public_bytes(_DER) for one in verified]
        refusal = self.known_clients.refusal(self.getpeercert(binary_form=True), chain)
        if refusal is not None:
            error = ssl.SSLCertVerificationError(1, refusal)
            error.verify_message = refusal
            raise error


def first_certificate(message: bytes, is_tls_1_3: bool) -> bytes:
    """Return the first certificate of a Certificate message; empty if the message has none or is malformed."""
    body = message[_HEADER_BYTES:]
    if is_tls_1_3:  # in TLS 1.3, a request context precedes the certificates
        body = body[1 + int.from_bytes(body[:1]) :]
    entry = body[_LENGTH_BYTES:]
    size = int.from_bytes(entry[:_LENGTH_BYTES])
    certificate = entry[_LENGTH_BYTES : _LENGTH_BYTES + size]
    return certificate if len(certificate) == size else b""


def common_name(certificate: bytes) -> str | None:
    """Return the first common name of a certificate, or None."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    try:
        found = x509.load_der_x509_certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        return None
    return str(found[0].value) if found else None


def _fingerprint(certificate: bytes) -> bytes:
    return hashlib.sha256(certificate).digest()

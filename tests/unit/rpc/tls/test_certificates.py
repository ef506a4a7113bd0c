"""Tests key stores, and handshakes with and without client certificates."""

from __future__ import annotations

import datetime
import os
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from ophion.errors import ConfigError
from ophion.rpc.tls.certificates import TlsSettings, server_context

PEM = serialization.Encoding.PEM
OPTION = "--rpc-http-tls-keystore-file"


def identity(name: str) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    """Return a key and its self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .sign(key, hashes.SHA256())
    )
    return key, certificate


def pem_file(path: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> Path:
    private = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + certificate.public_bytes(PEM))
    return path


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Run a handshake in memory. Raises `ssl.SSLError` when it fails."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here = server.wrap_bio(to_server, to_client, server_side=True)
    there = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    for _ in range(6):
        for side in (there, here):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    there.write(b"x")
    assert here.read(1) == b"x"


def trusting(certificate: x509.Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=certificate.public_bytes(PEM).decode())


def test_a_pem_file_is_a_key_store(tmp_path: Path) -> None:
    key, certificate = identity("node")
    context = server_context(TlsSettings(OPTION, pem_file(tmp_path / "node.pem", key, certificate)))
    handshake(context, trusting(certificate))


@pytest.mark.parametrize("password", [b"geheim", None])
def test_a_pkcs12_file_is_a_key_store(password: bytes | None, tmp_path: Path) -> None:
    key, certificate = identity("node")
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    store, secret = tmp_path / "node.p12", tmp_path / "password"
    store.write_bytes(pkcs12.serialize_key_and_certificates(b"node", key, certificate, None, encryption))
    secret.write_bytes((password or b"") + b"\n")
    context = server_context(TlsSettings(OPTION, store, secret if password else None))
    handshake(context, trusting(certificate))


def test_clients_are_asked_for_certificates(tmp_path: Path) -> None:
    key, certificate = identity("node")
    client_key, client_certificate = identity("client")
    trust = tmp_path / "clients.pem"
    trust.write_bytes(client_certificate.public_bytes(PEM))
    context = server_context(TlsSettings(OPTION, pem_file(tmp_path / "node.pem", key, certificate), None, True, trust))
    known, uncertified, nobody = trusting(certificate), trusting(certificate), trusting(certificate)
    known.load_cert_chain(pem_file(tmp_path / "client.pem", client_key, client_certificate))
    uncertified.load_cert_chain(pem_file(tmp_path / "stranger.pem", *identity("client")))
    handshake(context, known)
    for other in (uncertified, nobody):
        with pytest.raises(ssl.SSLError):
            handshake(context, other)


def test_old_versions_are_not_spoken(tmp_path: Path) -> None:
    context = server_context(TlsSettings(OPTION, pem_file(tmp_path / "node.pem", *identity("node"))))
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_clients_cannot_repeat_the_handshake(tmp_path: Path) -> None:
    context = server_context(TlsSettings(OPTION, pem_file(tmp_path / "node.pem", *identity("node"))))
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_mistakes_are_named(tmp_path: Path) -> None:
    store = pem_file(tmp_path / "node.pem", *identity("node"))
    empty, wrong = tmp_path / "empty", tmp_path / "wrong"
    empty.write_bytes(b"")
    wrong.write_bytes(b"-----BEGIN NOTHING-----\n")
    with pytest.raises(ConfigError, match=f"{OPTION} is missing"):
        server_context(TlsSettings(OPTION, None))
    with pytest.raises(ConfigError, match="give --rpc-http-tls-truststore-file, --rpc-http-tls-known-clients-file or"):
        server_context(TlsSettings(OPTION, store, None, True))
    for path in (tmp_path / "none", empty, wrong):
        with pytest.raises(ConfigError, match="Unable to"):
            server_context(TlsSettings(OPTION, path))
    for trust in (tmp_path / "none", empty):
        with pytest.raises(ConfigError, match=rf"Unable to use the TLS files \({trust}\)"):
            server_context(TlsSettings(OPTION, store, None, True, trust))
    with pytest.raises(ConfigError, match=rf"Unable to use the TLS files \({tmp_path / 'none'}\): No such file"):
        server_context(TlsSettings(OPTION, store, tmp_path / "none"))


def test_files_of_gigabytes_and_pipes_are_named(tmp_path: Path) -> None:
    store = pem_file(tmp_path / "node.pem", *identity("node"))
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(2**40)
    os.mkfifo(tmp_path / "pipe")
    for settings, words in (
        (TlsSettings("", huge), "huge: more than 1048576 bytes"),
        (TlsSettings("", store, huge), r"huge\): more than 1048576 bytes"),
        (TlsSettings("", store, None, True, huge), r"huge\): more than 1048576 bytes"),
        (TlsSettings("", store, None, True, tmp_path / "pipe"), r"pipe\): not a plain file"),
    ):
        with pytest.raises(ConfigError, match=words):
            server_context(settings)

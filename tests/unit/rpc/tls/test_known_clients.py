"""Tests client certificates that are accepted by fingerprint, in both TLS versions and against hostile handshakes."""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from ophion.errors import ConfigError
from ophion.rpc.tls.certificates import TlsSettings, server_context
from ophion.rpc.tls.handshakes import Handshakes
from ophion.rpc.tls.known_clients import first_certificate, read_known_clients
from ophion.runtime.fair_scheduler import FairScheduler
from tests.unit.rpc.tls.test_certificates import OPTION, identity, pem_file, trusting
from tests.unit.rpc.tls.test_handshakes import RUN, Echo, Run

TLS = ssl.TLSVersion
VERSIONS = pytest.mark.parametrize("version", [TLS.TLSv1_2, TLS.TLSv1_3], ids=["1.2", "1.3"])
Identity = tuple[ec.EllipticCurvePrivateKey, x509.Certificate]


def fingerprint_of(certificate: x509.Certificate) -> str:
    return hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()


def signed(issuer: Identity, name: str, is_authority: bool = False) -> Identity:
    """Return a key and a certificate that `issuer` has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer[1].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(is_authority, None), True)
    )
    return key, builder.sign(issuer[0], hashes.SHA256())


def authority(name: str) -> Identity:
    """Return a self-signed certificate that may sign others, as `openssl req -x509` makes it."""
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
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )
    return key, certificate


class Server:
    """A context that knows some clients by fingerprint."""

    def __init__(self, folder: Path, lines: list[str], trusted: x509.Certificate | None = None) -> None:
        self._folder = folder
        node = identity("node")
        self._node = node[1]
        known = folder / "known-clients"
        known.write_text("".join(f"{line}\n" for line in lines))
        store = None
        if trusted is not None:
            store = folder / "trusted.pem"
            store.write_bytes(trusted.public_bytes(Encoding.PEM))
        self.context = server_context(
            TlsSettings(OPTION, pem_file(folder / "node.pem", *node), None, True, store, known)
        )

    def client(self, version: ssl.TLSVersion, own: Identity | None, *chain: x509.Certificate) -> ssl.SSLContext:
        """Return the context of a client that presents the certificate `own`."""
        context = trusting(self._node)
        context.minimum_version = context.maximum_version = version
        if own is not None:
            file = pem_file(self._folder / "client.pem", *own)
            with file.open("ab") as end:
                end.writelines(one.public_bytes(Encoding.PEM) for one in chain)
            context.load_cert_chain(file)
        return context


class Exchange:
    """A handshake in memory, and what each side has sent."""

    def __init__(
        self, server: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None = None, step: int = 1 << 20
    ) -> None:
        self._to_server, self._to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._from_server, self._from_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server.wrap_bio(self._to_server, self._from_server, server_side=True)
        self.client = client.wrap_bio(self._to_client, self._from_client, server_hostname="localhost", session=session)
        self._step = step

    def run(self) -> None:
        """Deliver messages until both sides are done. A failing server delivers nothing more except its alert."""
        is_done = False
        for _ in range(4000):
            with suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self._to_server.write(self._from_client.read(self._step))
            if not is_done:
                with suppress(ssl.SSLWantReadError):
                    self.server.do_handshake()
                    is_done = True
            self._to_client.write(self._from_server.read())
            if is_done and not self._from_client.pending:
                break
        assert is_done
        self.client.do_handshake()
        self.client.write(b"x")
        self._to_server.write(self._from_client.read())
        assert self.server.read(1) == b"x"

    def is_refused(self) -> bool:
        try:
            self.run()
        except ssl.SSLError:
            return True
        return False


@VERSIONS
@pytest.mark.parametrize("step", [1 << 20, 1], ids=["whole", "byte by byte"])
def test_a_self_signed_certificate_of_the_file_is_accepted(version: ssl.TLSVersion, step: int, tmp_path: Path) -> None:
    own = identity("client")
    server = Server(tmp_path, ["# clients", "", f"client {fingerprint_of(own[1])}"])
    for _ in range(2):
        Exchange(server.context, server.client(version, own), step=step).run()


@VERSIONS
def test_a_listed_certificate_of_an_unknown_authority_is_accepted(version: ssl.TLSVersion, tmp_path: Path) -> None:
    issuer = authority("issuer")
    own = signed(issuer, "client")
    server = Server(tmp_path, [f"client {fingerprint_of(own[1])}"])
    Exchange(server.context, server.client(version, own, issuer[1])).run()
    assert Exchange(server.context, server.client(version, signed(issuer, "client"), issuer[1])).is_refused()


@VERSIONS
def test_other_certificates_are_refused(version: ssl.TLSVersion, tmp_path: Path) -> None:
    own, stranger = identity("client"), identity("client")
    server = Server(tmp_path, [f"client {fingerprint_of(own[1])}"])
    for _ in range(2):  # before and after the listed client has connected
        assert Exchange(server.context, server.client(version, stranger)).is_refused()
        assert Exchange(server.context, server.client(version, None)).is_refused()
        Exchange(server.context, server.client(version, own)).run()


@VERSIONS
def test_a_listed_certificate_needs_its_key(version: ssl.TLSVersion, tmp_path: Path) -> None:
    """The certificate is public, so a stranger can send it."""
    own, stranger = identity("client"), identity("client")
    server = Server(tmp_path, [f"client {fingerprint_of(own[1])}"])
    # the stranger sends its own certificate first, and the listed one as an issuer
    assert Exchange(server.context, server.client(version, stranger, own[1])).is_refused()
    Exchange(server.context, server.client(version, own)).run()
    assert Exchange(server.context, server.client(version, stranger, own[1])).is_refused()


@VERSIONS
def test_the_name_of_the_line_must_be_the_name_of_the_certificate(version: ssl.TLSVersion, tmp_path: Path) -> None:
    own = identity("client")
    server = Server(tmp_path, [f"other {fingerprint_of(own[1])}"])
    assert Exchange(server.context, server.client(version, own)).is_refused()


@VERSIONS
@pytest.mark.parametrize("with_store", [False, True])
def test_a_known_client_cannot_sign_others(version: ssl.TLSVersion, with_store: bool, tmp_path: Path) -> None:
    own, trusted = authority("client"), authority("authority")
    server = Server(tmp_path, [f"client {fingerprint_of(own[1])}"], trusted[1] if with_store else None)
    between = signed(own, "between", is_authority=True)
    for one, chain in ((signed(own, "child"), []), (signed(between, "grandchild"), [between[1], own[1]])):
        assert Exchange(server.context, server.client(version, one, *chain)).is_refused()
        Exchange(server.context, server.client(version, own)).run()
        assert Exchange(server.context, server.client(version, one, *chain)).is_refused()
    if with_store:
        Exchange(server.context, server.client(version, signed(trusted, "child of the authority"))).run()


def test_a_refused_client_of_tls_1_2_does_not_get_the_end_of_the_handshake(tmp_path: Path) -> None:
    own = authority("client")
    server = Server(tmp_path, [f"client {fingerprint_of(own[1])}"])
    Exchange(server.context, server.client(TLS.TLSv1_2, own)).run()
    client = server.client(TLS.TLSv1_2, signed(own, "child"))
    refused = Exchange(server.context, client)
    assert refused.is_refused()
    with pytest.raises(ssl.SSLWantReadError):
        refused.client.do_handshake()
    assert Exchange(server.context, client, session=refused.client.session).is_refused()


@VERSIONS
def test_only_sessions_of_accepted_clients_are_resumed(version: ssl.TLSVersion, tmp_path: Path) -> None:
    trusted = authority("authority")
    server = Server(tmp_path, [f"client {'00' * 32}"], trusted[1])
    context = server.client(version, signed(trusted, "child"))
    first = Exchange(server.context, context)
    first.run()
    second = Exchange(server.context, context, session=first.client.session)
    second.run()
    assert second.server.session_reused == (version is TLS.TLSv1_2), "resumed by its number, not by a ticket"
    clients = server.context.sslobject_class.known_clients  # type: ignore[attr-defined]
    clients._verified.clear()
    again = Exchange(server.context, context, session=first.client.session)
    assert again.is_refused() == (version is TLS.TLSv1_2)


def test_a_listed_authority_of_the_trust_store_still_signs(tmp_path: Path) -> None:
    trusted = authority("authority")
    server = Server(tmp_path, [f"authority {fingerprint_of(trusted[1])}"], trusted[1])
    Exchange(server.context, server.client(TLS.TLSv1_3, trusted)).run()
    Exchange(server.context, server.client(TLS.TLSv1_3, signed(trusted, "child"))).run()


@VERSIONS
def test_a_client_may_ask_for_its_old_session(version: ssl.TLSVersion, tmp_path: Path) -> None:
    own = identity("client")
    server = Server(tmp_path, [f"client {fingerprint_of(own[1])}"])
    context = server.client(version, own)
    first = Exchange(server.context, context)
    first.run()
    Exchange(server.context, context, session=first.client.session).run()
    assert first.client.session is None or not first.client.session.has_ticket


def entry(certificate: bytes) -> bytes:
    return len(certificate).to_bytes(3) + certificate


@pytest.mark.parametrize("is_tls_1_3", [False, True])
def test_the_first_certificate_of_a_message_is_found(is_tls_1_3: bool) -> None:
    context = b"\x03abc" if is_tls_1_3 else b""
    extensions = b"\x00\x00" if is_tls_1_3 else b""
    entries = entry(b"first") + extensions + entry(b"second") + extensions
    message = b"\x0b" + entry(context + entry(entries))
    assert first_certificate(message, is_tls_1_3) == b"first"
    empty = b"\x0b" + entry(context + entry(b""))
    assert first_certificate(empty, is_tls_1_3) == b""
    for size in range(len(message) - len(entry(b"second")) - 2 * len(extensions) - 1):
        assert first_certificate(message[:size], is_tls_1_3) == b""


@VERSIONS
def test_broken_handshakes_are_refused_and_honest_clients_served(version: ssl.TLSVersion, tmp_path: Path) -> None:
    """Each byte of the client's messages is wrong once."""
    own = identity("client")
    server = Server(tmp_path, [f"client {fingerprint_of(own[1])}"])
    client = server.client(version, own)
    for position in range(0, 3000, 7):
        arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        back, forth = ssl.MemoryBIO(), ssl.MemoryBIO()
        here = server.context.wrap_bio(arriving, leaving, server_side=True)
        there = client.wrap_bio(back, forth, server_hostname="localhost")
        sent = 0
        with suppress(ssl.SSLError):
            for _ in range(4):
                with suppress(ssl.SSLWantReadError):
                    there.do_handshake()
                data = bytearray(forth.read())
                if sent <= position < sent + len(data):
                    data[position - sent] ^= 0x41
                sent += len(data)
                arriving.write(data)
                with suppress(ssl.SSLWantReadError):
                    here.do_handshake()
                back.write(leaving.read())
    Exchange(server.context, client).run()


@RUN
@VERSIONS
def test_a_service_refuses_during_the_handshake(run: Run, version: ssl.TLSVersion, tmp_path: Path) -> None:
    own, stranger = authority("client"), identity("client")
    server = Server(tmp_path, [f"client {fingerprint_of(own[1])}"])
    before = Echo.made

    async def ask(port: int, context: ssl.SSLContext) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
        try:
            writer.write(b"hello")
            return await reader.read(5)
        finally:
            writer.close()

    async def story() -> None:
        handshakes = Handshakes(server.context, Echo, FairScheduler())
        listening = await asyncio.get_running_loop().create_server(handshakes.newcomer, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        for _ in range(2):
            assert await ask(port, server.client(version, own)) == b"HELLO"
            for other in (stranger, None, signed(own, "child")):
                try:
                    answer = await ask(port, server.client(version, other))
                except OSError:
                    answer = b""
                assert answer == b""
        listening.close()

    run(story())
    assert Echo.made == before + 2, "no refused client reaches the protocol"


def test_the_file_of_known_clients_is_read_as_besu_reads_it(tmp_path: Path) -> None:
    first, second = bytes(range(32)), bytes(32)
    file = tmp_path / "known"
    file.write_text(
        f"# comment\n\n  one {first.hex(':').upper()}  \ntwo\t0x{first.hex()}\n"
        f"one {second.hex()}\nthree {first.hex()}\n"
    )
    assert read_known_clients(file) == {first: frozenset({"two", "three"}), second: frozenset({"one"})}


@pytest.mark.parametrize("line", ["name", f"name {'00' * 31}", f"name {'zz' * 32}", f"my name {'00' * 32}"])
def test_mistakes_of_the_file_are_named(line: str, tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text(f"# first\n{line}\n")
    with pytest.raises(ConfigError, match=r"known, line 2: expected a common name and the SHA-256 fingerprint"):
        read_known_clients(file)
    with pytest.raises(ConfigError, match=r"Unable to read the known clients file .*none: No such file"):
        read_known_clients(tmp_path / "none")
    file.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="Unable to read the known clients file"):
        read_known_clients(file)

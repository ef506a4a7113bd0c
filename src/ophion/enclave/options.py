"""Options of the embedded or remote enclave. `ophion.privacy` has the options of private transactions."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from ophion.runtime.options import Options, is_url, option, read_host
from ophion.runtime.options import port as valid_port

_SWITCH = "--privacy-enabled"
_SESSIONS = "devp2p"


class DeliveryMode(StrEnum):
    """The rule that decides when a payload counts as sent."""

    ALL = "all"
    """Every recipient must have acknowledged the payload."""
    QUEUE = "queue"
    """The payload must be stored. Recipients that are offline get the payload later from the outbox."""


def _url(text: str) -> str:
    if not is_url(text, "http", "https"):
        raise ValueError(f"expected a URL with http or https but was '{text}'")
    return text.rstrip("/")


def _peer(text: str) -> str:
    return text if text == _SESSIONS else _url(text)


def _enclave_key(text: str) -> bytes:
    # lazy import: few nodes have an enclave
    from ophion.enclave.encoding import read_key
    from ophion.native.enclave import is_sound_enclave_key

    try:
        key = read_key(text)
    except ValueError:
        key = b""
    if not is_sound_enclave_key(key):
        raise ValueError(f"expected a public key of an enclave in base64 but was '{text}'")
    return key


class EnclaveConfig(Options):
    """Enclave: the embedded enclave, or the URL of a remote enclave."""

    url: str | None = option(
        "--privacy-url",
        default=None,
        metavar="URL",
        parse=_url,
        needs=_SWITCH,
        help="URL of a remote enclave: Orion, Tessera in orion mode, or another Ophion. (default: embedded enclave)",
    )
    public_key_file: Path | None = option(
        "--privacy-public-key-file",
        default=None,
        needs=_SWITCH,
        help="Public key of this node in the enclave. Required with --privacy-url, unless tokens name the keys "
        "(--privacy-multi-tenancy-enabled); otherwise one of the embedded keys.",
    )
    key_files: tuple[Path, ...] = option(
        "--privacy-enclave-key-file",
        default=(),
        needs=_SWITCH,
        help="Private keys of the embedded enclave; the first is the default one. (default: privacy/nodeKey.key in the "
        "data path, generated when missing)",
    )
    password_file: Path | None = option(
        "--privacy-enclave-key-password-file",
        default=None,
        needs=_SWITCH,
        help="Passwords of the private keys, one line per file; an empty line for a key without a password.",
    )
    delivery: DeliveryMode = option(
        "--privacy-delivery",
        default=DeliveryMode.ALL,
        needs=_SWITCH,
        help="all: every recipient must have a payload before its marker is sent. queue: recipients may get it later.",
    )
    always_send_to: tuple[bytes, ...] = option(
        "--privacy-always-send-to",
        default=(),
        metavar="KEY",
        parse=_enclave_key,
        needs=_SWITCH,
        help="Enclave keys (base64) that get a copy of every payload of this node.",
    )
    accept_groups_from: tuple[bytes, ...] = option(
        "--privacy-accept-groups-from",
        default=(),
        metavar="KEY",
        parse=_enclave_key,
        needs=_SWITCH,
        help="Enclave keys (base64) whose new groups are accepted. (default: all; with node permissions those of"
        " peers and of --privacy-enclave-peers)",
    )
    http_host: str = option(
        "--privacy-enclave-http-host",
        default="127.0.0.1",
        parse=read_host,
        metavar="HOST",
        needs=_SWITCH,
        help="Address to serve the enclave on.",
    )
    http_port: int | None = option(
        "--privacy-enclave-http-port",
        default=None,
        check=lambda port: None if port is None else valid_port(port),
        needs=_SWITCH,
        help="Serve the embedded enclave on this port; 0 uses a free one. Every client of the port can read payloads.",
    )
    peers: tuple[str, ...] = option(
        "--privacy-enclave-peers",
        default=(),
        metavar="URL",
        parse=_peer,
        needs=_SWITCH,
        help="URLs of enclaves whose nodes are not peers (their --privacy-enclave-port). The value devp2p means the "
        "enclaves of peers, which are found without this option.",
    )
    peer_host: str = option(
        "--privacy-enclave-host",
        default="0.0.0.0",
        parse=read_host,
        metavar="HOST",
        needs=_SWITCH,
        help="Address on which this enclave accepts other enclaves.",
    )
    peer_port: int | None = option(
        "--privacy-enclave-port",
        default=None,
        check=lambda port: None if port is None else valid_port(port),
        needs=_SWITCH,
        help="Port for enclaves of nodes that are not peers; 0 uses a free port.",
    )
    tessera_peers: tuple[str, ...] = option(
        "--privacy-enclave-tessera-peers",
        default=(),
        metavar="URL",
        parse=_url,
        needs=_SWITCH,
        help="URLs of members that still use Tessera (the P2P server of Tessera). More members are found through them.",
    )
    tessera_url: str | None = option(
        "--privacy-enclave-tessera-url",
        default=None,
        metavar="URL",
        parse=_url,
        needs=_SWITCH,
        help="URL under which Tessera reaches --privacy-enclave-port of this node.",
    )
    tls_enabled: bool = option(
        "--privacy-tls-enabled", default=False, needs=_SWITCH, help="Use TLS to the remote enclave."
    )
    tls_keystore_file: Path | None = option(
        "--privacy-tls-keystore-file",
        default=None,
        needs="--privacy-tls-enabled",
        help="Key and certificate that this node presents to the enclave (PKCS #12 or PEM).",
    )
    tls_password_file: Path | None = option(
        "--privacy-tls-keystore-password-file",
        default=None,
        needs="--privacy-tls-enabled",
        help="Password of the key store.",
    )
    tls_known_enclave_file: Path | None = option(
        "--privacy-tls-known-enclave-file",
        default=None,
        needs="--privacy-tls-enabled",
        help="Fingerprints of the enclave's certificate: lines of host:port and SHA-256 in hex. (default: "
        "certificates that the system trusts)",
    )

    @property
    def serves_http(self) -> bool:
        """Whether the HTTP API of the embedded enclave (privacy.md 5) is served."""
        return self.http_port is not None

    @property
    def peer_urls(self) -> tuple[str, ...]:
        """URLs of other enclaves that this enclave reaches over HTTP."""
        return tuple(one for one in dict.fromkeys(self.peers) if one != _SESSIONS)

    def problems(self) -> Iterator[str]:
        if self.url is not None and (self.peer_urls or self.tessera_peers or self.peer_port is not None):
            yield "--privacy-enclave-peers and -port need the embedded enclave; --privacy-url selects a remote one."
        if self.tessera_peers and (self.peer_port is None or self.tessera_url is None):
            yield "--privacy-enclave-tessera-peers needs --privacy-enclave-port and --privacy-enclave-tessera-url."
        if self.url is not None and self.serves_http:
            yield "--privacy-enclave-http-port serves the embedded enclave; --privacy-url selects a remote one."
        if self.url is not None and (self.tls_enabled != self.url.startswith("https:")):
            yield "--privacy-tls-enabled and an https address in --privacy-url need each other: set both or neither."

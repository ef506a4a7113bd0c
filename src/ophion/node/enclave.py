"""Builds the enclave of a node: the embedded enclave, or the client of a remote enclave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ophion.enclave.embedded import EmbeddedEnclave, EnclaveSettings
from ophion.enclave.key_loading import open_keys
from ophion.enclave.keyfile import read_public
from ophion.enclave.options import EnclaveConfig
from ophion.enclave.store_writer import PAYLOADS
from ophion.errors import ConfigError
from ophion.native.enclave import EnclaveKeyring
from ophion.native.store import Store
from ophion.node.config import NodeConfig
from ophion.rpc.tls.certificates import TlsSettings, client_context
from ophion.runtime.clock import Entropy
from ophion.runtime.operator_files import content_of
from ophion.runtime.thread_pools import Lanes

if TYPE_CHECKING:
    from ophion.enclave.interface import Enclave

_FINGERPRINT_SIZE: Final = 32


def build_enclave(config: NodeConfig, store: Store, data_path: Path, lanes: Lanes, entropy: Entropy) -> Enclave:
    """Build the enclave that the options choose."""
    if config.enclave.url is not None:
        return _outside(config.enclave, config.enclave.url)
    return _inside(config, store, data_path, lanes, entropy)


def _outside(chosen: EnclaveConfig, url: str) -> Enclave:
    # lazy import: few nodes have a remote enclave
    from ophion.enclave.remote.client import RemoteEnclave
    from ophion.enclave.remote.http import HttpClient

    tls = pin = None
    if chosen.tls_enabled:
        settings = TlsSettings("--privacy-tls-keystore-file", chosen.tls_keystore_file, chosen.tls_password_file)
        tls = client_context(settings, is_pinned=chosen.tls_known_enclave_file is not None)
        if chosen.tls_known_enclave_file is not None:
            pin = known_fingerprint(chosen.tls_known_enclave_file, url)
    key = None if chosen.public_key_file is None else read_public(chosen.public_key_file)
    return RemoteEnclave(HttpClient(url, tls, pin), key)


def known_fingerprint(file: Path, url: str) -> bytes:
    """Return the SHA-256 fingerprint of a server's certificate from a file of `host:port fingerprint` lines."""
    parts = urlsplit(url)
    server = f"{parts.hostname}:{parts.port or 443}"
    try:
        lines = content_of(file).decode().splitlines()
        words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
        found = [bytes.fromhex(fingerprint.replace(":", "")) for host, fingerprint in words if host.lower() == server]
    except (OSError, ValueError) as error:
        raise ConfigError(f"Unable to read the known enclaves in {file}: {error}") from None
    if not found or len(found[0]) != _FINGERPRINT_SIZE:
        raise ConfigError(f"{file} has no SHA-256 fingerprint for {server}.")
    return found[0]


def _inside(config: NodeConfig, store: Store, data_path: Path, lanes: Lanes, entropy: Entropy) -> EmbeddedEnclave:
    chosen = config.enclave
    pairs = open_keys(chosen, data_path, entropy, lambda: bool(store.rows(PAYLOADS, b"", b"", 1)))
    keyring = EnclaveKeyring([pair.secret for pair in pairs])
    permissions = config.permissions
    settings = EnclaveSettings(
        chosen.delivery,
        chosen.always_send_to,
        frozenset(chosen.accept_groups_from) or None,
        config.privacy.max_gas,
        is_restricted=permissions.nodes_file_enabled or permissions.nodes_contract_enabled,
    )
    return EmbeddedEnclave(store, keyring, lanes, entropy, settings)

"""Loads the keys of an embedded enclave. If the options name no key, the first start creates a key."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ophion.enclave.encoding import base64_text
from ophion.enclave.interface import MAX_KEYS
from ophion.enclave.keyfile import KeyPair, new_pair, public_file_of, read_pair, read_public, write_pair
from ophion.enclave.options import EnclaveConfig
from ophion.errors import ConfigError, KeyFileError
from ophion.runtime.clock import Entropy
from ophion.runtime.operator_files import content_of

log = logging.getLogger(__name__)

DEFAULT_KEY_FILE: Final = Path("privacy") / "nodeKey.key"


def open_keys(
    config: EnclaveConfig, data_path: Path, entropy: Entropy, has_payloads: Callable[[], bool] = lambda: False
) -> list[KeyPair]:
    """Return all key pairs, the default pair first. Raises `ConfigError` or `KeyFileError`, which name the file.

    `has_payloads` returns whether the database holds payloads, which a new key could not open.
    """
    files = config.key_files or (data_path / DEFAULT_KEY_FILE,)
    if len(files) > MAX_KEYS:
        raise ConfigError(f"--privacy-enclave-key-file: at most {MAX_KEYS} keys.")
    passwords = _passwords(config.password_file)
    pairs = []
    for index, file in enumerate(files):
        password = passwords[index] if index < len(passwords) else None
        if not config.key_files and not file.exists():
            if has_payloads():
                raise KeyFileError(
                    f"{file} is missing, and this database holds private payloads that only its key opens. Restore"
                    " the file; a backup does not contain it. If lost, set another key with --privacy-enclave-key-file."
                )
            pairs.append(_generate(file, entropy, password))
        else:
            pairs.append(read_pair(file, password))
            log.info("Loaded enclave key %s from %s", base64_text(pairs[-1].public), file)
    public = [pair.public for pair in pairs]
    if len(set(public)) != len(public):
        raise ConfigError("--privacy-enclave-key-file: the same key twice.")
    if config.public_key_file is not None:
        chosen = read_public(config.public_key_file)
        if chosen not in public:
            raise ConfigError(f"--privacy-public-key-file: {base64_text(chosen)} is no key of the embedded enclave.")
        pairs.sort(key=lambda pair: pair.public != chosen)
    return pairs


def _generate(file: Path, entropy: Entropy, password: bytes | None) -> KeyPair:
    pair = new_pair(entropy)
    write_pair(file, pair, entropy, password)
    log.info(
        "Generated new enclave key %s and stored it to %s and %s", base64_text(pair.public), file, public_file_of(file)
    )
    return pair


def _passwords(file: Path | None) -> list[bytes | None]:
    if file is None:
        return []
    try:
        return [line or None for line in content_of(file).splitlines()]
    except (OSError, ValueError) as error:
        raise KeyFileError(f"Unable to read the passwords in {file}: {error}") from None

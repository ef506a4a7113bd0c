"""Key files of enclaves (privacy.md 5.2): a private key in JSON, its public key in base64 beside it.

    {"type": "unlocked",   "data": {"bytes": "<base64>"}}
    {"type": "argon2sbox", "data": {"aopts": {...}, "asalt": ..., "snonce": ..., "sbox": ...}}     with a password

Tessera also uses the form with a password, so Tessera and Ophion read each other's files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ophion.enclave.encoding import base64_text, read_base64, read_exactly, read_key
from ophion.enclave.interface import KEY_SIZE
from ophion.errors import KeyFileError
from ophion.native.enclave import enclave_public_key, lock_enclave_key, unlock_enclave_key
from ophion.native.exceptions import NativeError
from ophion.runtime.clock import Entropy
from ophion.runtime.operator_files import content_of, write_whole

_SALT_SIZE: Final = 16
_NONCE_SIZE: Final = 24
_COSTS: Final = (65_536, 3, 4)
"""Argon2id parameters: memory in KiB, iterations and lanes. One password guess takes about 0.1 s."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A key pair of an enclave."""

    public: bytes
    secret: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: bytes) -> KeyPair:
        """Return the key pair of a private key."""
        return cls(enclave_public_key(secret), secret)


def new_pair(entropy: Entropy) -> KeyPair:
    """Generate a key pair."""
    return KeyPair.of(entropy.token(KEY_SIZE))


def public_file_of(path: Path) -> Path:
    """Return the path of the public key beside a private key file: nodeKey.pub for nodeKey.key."""
    return path.with_suffix(".pub")


def write_pair(path: Path, pair: KeyPair, entropy: Entropy, password: bytes | None = None) -> None:
    """Write the private key file, and the public key file beside it. Only the owner can read the private key. Raises an
    error if a file already exists.
    """
    public_file = public_file_of(path)
    for file in (path, public_file):
        if file.exists():
            raise KeyFileError(f"{file} exists already: keys are never overwritten.")
    if public_file == path:
        raise KeyFileError(f"{path}: the private key file cannot end with .pub.")
    content = _unlocked(pair) if password is None else _locked(pair, password, entropy)
    try:
        write_whole(path, json.dumps(content, indent=2) + "\n", 0o600)
        write_whole(public_file, base64_text(pair.public))
    except OSError as error:
        raise KeyFileError(f"Unable to write {path}: {error.strerror}") from error


def read_pair(path: Path, password: bytes | None = None) -> KeyPair:
    """Read the key pair in a private key file."""
    try:
        content = json.loads(_content(path))
        kind, data = content["type"], content["data"]
        if kind == "unlocked":
            return KeyPair.of(read_key(data["bytes"]))
        if kind != "argon2sbox":
            raise KeyFileError(f"{path}: private keys of type {str(kind)[:40]!r} are not supported.")
        if password is None:
            raise KeyFileError(f"{path}: the private key is encrypted, and no password was given.")
        return KeyPair.of(_opened(path, data, password))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, NativeError):
        raise KeyFileError(f"{path}: not a private key file of an enclave.") from None


def read_public(path: Path) -> bytes:
    """Read a public key file. Surrounding whitespace is ignored."""
    try:
        return read_key(_content(path).decode("ascii").strip())
    except ValueError:
        raise KeyFileError(
            f"Contents of enclave public key file needs to be 44 characters long to decode to a valid 32 byte public "
            f"key. ({path})"
        ) from None


def _content(path: Path) -> bytes:
    try:
        return content_of(path)
    except OSError as error:
        raise KeyFileError(f"Unable to read the enclave key file {path}: {error.strerror}") from error


def _unlocked(pair: KeyPair) -> dict[str, Any]:
    return {"type": "unlocked", "data": {"bytes": base64_text(pair.secret)}}


def _locked(pair: KeyPair, password: bytes, entropy: Entropy) -> dict[str, Any]:
    salt, nonce = entropy.token(_SALT_SIZE), entropy.token(_NONCE_SIZE)
    locked = lock_enclave_key(pair.secret, password, salt, nonce, _COSTS)
    memory, iterations, lanes = (str(cost) for cost in _COSTS)
    return {
        "type": "argon2sbox",
        "data": {
            "aopts": {"variant": "id", "memory": memory, "iterations": iterations, "parallelism": lanes},
            "asalt": base64_text(salt),
            "snonce": base64_text(nonce),
            "sbox": base64_text(locked),
        },
    }


def _opened(path: Path, data: dict[str, Any], password: bytes) -> bytes:
    options = data["aopts"]
    if not isinstance(options, dict) or options.get("variant", options.get("algorithm")) != "id":
        raise ValueError("argon2id is expected")
    costs = (int(options["memory"]), int(options["iterations"]), int(options["parallelism"]))
    if any(not 0 < cost < 1 << 32 for cost in costs):
        raise ValueError("costs out of range")
    salt, nonce = read_base64(data["asalt"]), read_exactly(data["snonce"], _NONCE_SIZE)
    secret = unlock_enclave_key(read_base64(data["sbox"]), password, salt, nonce, costs)
    if secret is None:
        raise KeyFileError(f"{path}: the password is wrong.")
    return secret

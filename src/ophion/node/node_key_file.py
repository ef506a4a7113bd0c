"""The node's private key on disk: one line of 64 hex digits, 0x optional."""

from __future__ import annotations

from pathlib import Path

from ophion.errors import KeyFileError
from ophion.native.crypto import PrivateKey
from ophion.runtime.clock import Entropy, SystemEntropy
from ophion.runtime.operator_files import content_of, write_whole


def load_key(path: Path) -> PrivateKey:
    """Read a key file. Raises `KeyFileError` unless the file holds exactly one key."""
    try:
        content = content_of(path)
    except OSError as error:
        raise KeyFileError(f"Unable to read the private key file {path}: {error.strerror}") from error
    except ValueError as error:
        raise _no_key(path, str(error)) from error
    secret = _secret(content, path)
    try:
        return PrivateKey(secret)
    except KeyFileError as error:
        raise _no_key(path, "a number that is no key of the curve") from error


def _secret(content: bytes, path: Path) -> bytes:
    lines = content.decode("ascii", errors="replace").splitlines()
    digits = lines[0].strip().removeprefix("0x") if len(lines) == 1 else ""
    try:
        secret = bytes.fromhex(digits) if digits.isalnum() else b""
    except ValueError:
        secret = b""
    if len(secret) != 32:
        raise _no_key(path, "expected one line of 64 hex digits")
    return secret


def _no_key(path: Path, reason: str) -> KeyFileError:
    return KeyFileError(f"Supplied file does not contain valid key pair. ({path}: {reason})")


def load_or_create_key(path: Path, entropy: Entropy | None = None) -> tuple[PrivateKey, bool]:
    """Load the key from a file; create it if the file is missing. The second value is True for a new key."""
    # a dangling link means a key on an unmounted disk, so no new key is created
    if path.exists() or path.is_symlink():
        return load_key(path), False
    key = new_key(entropy or SystemEntropy())
    write_text(path, f"0x{key.secret().hex()}", mode=0o600)
    return key, True


def new_key(entropy: Entropy) -> PrivateKey:
    """Draw a random key. A number outside the curve order (one in 2^128) is drawn again."""
    while True:
        try:
            return PrivateKey(entropy.token(32))
        except KeyFileError:
            continue


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a small file completely or not at all. Raises `KeyFileError` when that fails."""
    try:
        write_whole(path, text, mode)
    except OSError as error:
        raise KeyFileError(f"Unable to write {path}: {error.strerror}") from error

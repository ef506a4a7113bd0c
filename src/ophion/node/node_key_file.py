"""The node's private key on disk: one line of 64 hex digits (0x optional), or an encrypted key file (keystore.py)."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Final

from ophion.errors import KeyFileError
from ophion.native.crypto import PrivateKey
from ophion.runtime.clock import Entropy, SystemEntropy
from ophion.runtime.operator_files import content_of, write_whole

PASSWORD_OPTION: Final = "--node-private-key-password-file"
VALIDATOR_PASSWORD_OPTION: Final = "--validator-private-key-password-file"


def load_key(path: Path, password_file: Path | None = None, option: str = PASSWORD_OPTION) -> PrivateKey:
    """Read a key file. Raises `KeyFileError` when the file cannot be read or does not hold exactly one key.

    The password of an encrypted file comes from the first line of `password_file`, otherwise from the terminal.
    `option` is the name of the password option, for error messages.
    """
    content = read_key_file(path)
    if is_encrypted(content):
        return _decrypted(content, path, password_file, option)
    secret = _secret(content, path)
    try:
        return PrivateKey(secret)
    except KeyFileError as error:
        raise _no_key(path, "a number that is no key of the curve") from error


def check_key_file(path: Path, password_file: Path | None = None) -> None:
    """Raise `KeyFileError` for a key file that `load_key` would refuse. Does not decrypt the file and does not
    prompt.
    """
    content = read_key_file(path)
    if not is_encrypted(content):
        load_key(path)
        return
    from ophion.wallet.keystore import check_form  # lazy import: this module loads OpenSSL

    try:
        check_form(content)
    except KeyFileError as error:
        raise _no_key(path, str(error)) from error
    if password_file is not None:
        read_password_file(password_file)


def is_encrypted(content: bytes) -> bool:
    """Whether the content looks like an encrypted key file, not like 64 hex digits."""
    return content.lstrip()[:1] == b"{"


def read_key_file(path: Path) -> bytes:
    """Return the content of a key file. Raises `KeyFileError` when the file cannot be read."""
    try:
        return content_of(path)
    except OSError as error:
        raise KeyFileError(f"Unable to read the private key file {path}: {error.strerror}") from error
    except ValueError as error:
        raise _no_key(path, str(error)) from error


def read_password_file(path: Path) -> str:
    """Return the first line of a password file."""
    try:
        lines = content_of(path).decode().splitlines()
    except OSError as error:
        raise KeyFileError(f"Unable to read the password file {path}: {error.strerror}") from error
    except ValueError as error:
        raise KeyFileError(f"Unable to read the password file {path}: {error}") from error
    if not lines or not lines[0]:
        raise KeyFileError(f"The password file {path} is empty.")
    return lines[0]


def _decrypted(content: bytes, path: Path, password_file: Path | None, option: str) -> PrivateKey:
    if password_file is not None:
        password = read_password_file(password_file)
    elif sys.stdin is not None and sys.stdin.isatty():
        password = getpass.getpass(f"Password of {path}: ")
    else:
        raise KeyFileError(f"The key file {path} is encrypted. Name a file with its password: {option}.")
    from ophion.wallet.keystore import decrypt  # lazy import: this module loads OpenSSL

    try:
        return decrypt(content, password)
    except KeyFileError as error:
        raise KeyFileError(f"Unable to decrypt the private key file {path}: {error}.") from error


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


def load_or_create_key(
    path: Path, entropy: Entropy | None = None, password_file: Path | None = None
) -> tuple[PrivateKey, bool]:
    """Return the key in a file and False. If the file is missing, create a key and return it with True."""
    # a dangling symbolic link may point to a key on a disk that is not mounted, so create no new key
    if path.exists() or path.is_symlink():
        return load_key(path, password_file), False
    key = new_key(entropy or SystemEntropy())
    write_text(path, f"0x{key.secret().hex()}", mode=0o600)
    return key, True


def new_key(entropy: Entropy) -> PrivateKey:
    """Draw a random key. A number that is not a valid key (probability 2^-128) is drawn again."""
    while True:
        try:
            return PrivateKey(entropy.token(32))
        except KeyFileError:
            continue


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a small file completely or not at all. Raises `KeyFileError` if the write fails."""
    try:
        write_whole(path, text, mode)
    except OSError as error:
        raise KeyFileError(f"Unable to write {path}: {error.strerror}") from error

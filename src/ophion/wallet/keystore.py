"""Encrypted key files: Web3 Secret Storage, version 3 (scrypt or PBKDF2, AES-128-CTR, Keccak-256 as checksum).

This module loads OpenSSL. A node imports it only for an encrypted key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ophion.errors import KeyFileError
from ophion.native.crypto import PrivateKey, keccak256
from ophion.primitives.types import Address

VERSION: Final = 3
CIPHER: Final = "aes-128-ctr"
SCRYPT_N: Final = 1 << 18
SCRYPT_R: Final = 8
MAX_KDF_BYTES: Final = 1 << 30
"""Maximum memory of one key derivation in bytes. A key file that needs more memory is refused."""
MAX_KDF_ROUNDS: Final = 10_000_000
_MAX_OPENSSL_BYTES: Final = (1 << 31) - 2
"""The largest memory limit that hashlib accepts. The effective limit is `MAX_KDF_BYTES`."""
_KEY_BYTES: Final = 32


def encrypt(key: PrivateKey, password: str, token: Callable[[int], bytes], scrypt_n: int = SCRYPT_N) -> str:
    """Return the encrypted key file as JSON text; `token` returns random bytes."""
    salt, iv, id = token(32), token(16), token(16)
    params = {"dklen": _KEY_BYTES, "n": scrypt_n, "r": SCRYPT_R, "p": 1, "salt": salt.hex()}
    derived = _scrypt(password.encode(), params)
    ciphertext = _aes_ctr(derived[:16], iv, key.secret())
    document = {
        "address": key.address.hex(),
        "crypto": {
            "cipher": CIPHER,
            "cipherparams": {"iv": iv.hex()},
            "ciphertext": ciphertext.hex(),
            "kdf": "scrypt",
            "kdfparams": params,
            "mac": keccak256(derived[16:32] + ciphertext).hex(),
        },
        "id": f"{id[:4].hex()}-{id[4:6].hex()}-4{id[6:8].hex()[1:]}-a{id[8:10].hex()[1:]}-{id[10:].hex()}",
        "version": VERSION,
    }
    return json.dumps(document, indent=2)


def decrypt(content: bytes, password: str) -> PrivateKey:
    """Return the key of an encrypted key file. Raises `KeyFileError` for a wrong password or an unreadable file."""
    crypto = _crypto(content)
    try:
        if crypto["cipher"] != CIPHER:
            raise KeyFileError(f"the cipher {crypto['cipher']} is not supported; use {CIPHER}")
        iv, ciphertext, mac = (
            _hex(text) for text in (crypto["cipherparams"]["iv"], crypto["ciphertext"], crypto["mac"])
        )
        derive = _KDFS.get(crypto["kdf"])
        if derive is None:
            raise KeyFileError(f"the key derivation {crypto['kdf']} is not supported; use scrypt or pbkdf2")
        derived = derive(password.encode(), crypto["kdfparams"])
    except (KeyError, TypeError, ValueError) as error:
        raise KeyFileError(f"the encrypted key cannot be read ({type(error).__name__}: {error})") from error
    if not hmac.compare_digest(keccak256(derived[16:32] + ciphertext), mac):
        raise KeyFileError("the password is wrong")
    return PrivateKey(_aes_ctr(derived[:16], iv, ciphertext))


def address_of(content: bytes) -> Address | None:
    """Return the address that the file states; None if it states no address. Needs no password, so the address is not
    verified.
    """
    text = _document(content).get("address")
    try:
        address = _hex(text) if isinstance(text, str) else b""
    except ValueError:
        address = b""
    return Address(address) if len(address) == 20 else None


def check_form(content: bytes) -> None:
    """Raise `KeyFileError` if the content is no encrypted key file of version 3."""
    _crypto(content)


def _document(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise KeyFileError("the encrypted key is not valid JSON") from error
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise KeyFileError("only version 3 of Web3 Secret Storage is supported")
    return document


def _crypto(content: bytes) -> dict[str, Any]:
    document = _document(content)
    crypto = document.get("crypto", document.get("Crypto"))
    if not isinstance(crypto, dict):
        raise KeyFileError("the member `crypto` is missing")
    return crypto


def _hex(text: object) -> bytes:
    if not isinstance(text, str):
        raise ValueError("hexadecimal text is expected")
    return bytes.fromhex(text.removeprefix("0x"))


def _scrypt(password: bytes, params: dict[str, Any]) -> bytes:
    n, r, p = int(params["n"]), int(params["r"]), int(params["p"])
    if not (n > 0 and r > 0 and 0 < p <= 16 and 128 * n * r <= MAX_KDF_BYTES):
        raise KeyFileError(f"scrypt with n={n} r={r} p={p} needs more than {MAX_KDF_BYTES >> 20} MiB")
    if n.bit_length() > 16 * r:
        raise KeyFileError(f"scrypt with n={n} r={r} is outside RFC 7914; encrypt the key again with r=8")
    return hashlib.scrypt(
        password,
        salt=_hex(params["salt"]),
        n=n,
        r=r,
        p=p,
        dklen=_key_bytes(params),
        maxmem=_MAX_OPENSSL_BYTES,
    )


def _pbkdf2(password: bytes, params: dict[str, Any]) -> bytes:
    rounds = int(params["c"])
    if params["prf"] != "hmac-sha256" or not 0 < rounds <= MAX_KDF_ROUNDS:
        raise KeyFileError(f"pbkdf2 needs prf hmac-sha256 and at most {MAX_KDF_ROUNDS} rounds")
    return hashlib.pbkdf2_hmac("sha256", password, _hex(params["salt"]), rounds, _key_bytes(params))


def _key_bytes(params: dict[str, Any]) -> int:
    if params["dklen"] != _KEY_BYTES:
        raise KeyFileError(f"dklen must be {_KEY_BYTES}")
    return _KEY_BYTES


_KDFS: Final = {"scrypt": _scrypt, "pbkdf2": _pbkdf2}


def _aes_ctr(key: bytes, iv: bytes, data: bytes) -> bytes:
    if len(iv) != 16 or len(data) != _KEY_BYTES:
        raise KeyFileError("the initialisation vector must have 16 bytes and the ciphertext 32")
    stream = Cipher(algorithms.AES(key), modes.CTR(iv)).encryptor()
    return stream.update(data) + stream.finalize()

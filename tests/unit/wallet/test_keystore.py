"""Encrypted key files: the vectors of the format's description, round trips, and refused files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ophion.errors import KeyFileError
from ophion.runtime.clock import SystemEntropy
from ophion.testing.signing import DEV_KEYS
from ophion.wallet.keystore import address_of, check_form, decrypt, encrypt

# this key is from the published test vectors
SECRET = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d"
PBKDF2: dict[str, Any] = {
    "crypto": {
        "cipher": "aes-128-ctr",
        "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
        "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        "kdf": "pbkdf2",
        "kdfparams": {
            "c": 262144,
            "dklen": 32,
            "prf": "hmac-sha256",
            "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
        },
        "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
    },
    "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
    "version": 3,
}
FAST = 1 << 12


def test_the_published_vector() -> None:
    content = json.dumps(PBKDF2).encode()
    assert decrypt(content, "testpassword").secret().hex() == SECRET
    assert address_of(content) is None
    with pytest.raises(KeyFileError, match="the password is wrong"):
        decrypt(content, "testpasswore")


def test_a_key_survives_encryption() -> None:
    text = encrypt(DEV_KEYS[0], "pässword", SystemEntropy().token, FAST).encode()
    assert decrypt(text, "pässword").secret() == DEV_KEYS[0].secret()
    assert address_of(text) == DEV_KEYS[0].address
    assert DEV_KEYS[0].secret().hex().encode() not in text
    assert encrypt(DEV_KEYS[0], "pässword", SystemEntropy().token, FAST).encode() != text


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("version",), 1, "only version 3"),
        (("crypto",), None, "`crypto` is missing"),
        (("crypto", "cipher"), "aes-256-gcm", "cipher aes-256-gcm is not supported"),
        (("crypto", "kdf"), "argon2", "key derivation argon2 is not supported"),
        (("crypto", "kdfparams", "n"), 1 << 30, "needs more than 1024 MiB"),
        (("crypto", "kdfparams", "n"), -1, "needs more than"),
        (("crypto", "kdfparams", "r"), 0, "needs more than"),
        (("crypto", "kdfparams"), {"n": 262144, "r": 1, "p": 8, "dklen": 32, "salt": ""}, "outside RFC 7914"),
        (("crypto", "kdfparams", "n"), 3, "cannot be read"),
        (("crypto", "kdfparams", "salt"), 7, "cannot be read"),
        (("crypto", "kdfparams", "dklen"), 64, "dklen must be 32"),
        (("crypto", "kdfparams"), {}, "cannot be read"),
        (("crypto", "cipherparams"), [], "cannot be read"),
        (("crypto", "ciphertext"), "zz", "cannot be read"),
    ],
)
def test_files_that_are_refused(path: tuple[str, ...], value: object, reason: str) -> None:
    document = json.loads(encrypt(DEV_KEYS[0], "p", SystemEntropy().token, FAST))
    inner = document
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(KeyFileError, match=reason):
        decrypt(json.dumps(document).encode(), "p")


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b"[" * 100_000, b"\xff{"])
def test_content_that_is_no_document(content: bytes) -> None:
    with pytest.raises(KeyFileError):
        check_form(content)

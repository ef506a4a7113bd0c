"""Tests keys and signatures through the Python facade of the extension."""

from __future__ import annotations

import pytest

from ophion.errors import KeyFileError
from ophion.native.crypto import PrivateKey, keccak256, recover_address, recover_addresses

# this key is a published test key
SECRET = bytes.fromhex("8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63")


def test_a_key_knows_its_address_and_signs() -> None:
    key = PrivateKey(SECRET)
    digest = keccak256(b"message")
    assert key.address.hex() == "fe3b557e8fb62b89f4916b721be55ceb828dbd73"
    assert recover_address(digest, key.sign(digest)) == key.address


def test_a_key_never_shows_its_secret() -> None:
    assert SECRET.hex() not in repr(PrivateKey(SECRET))


@pytest.mark.parametrize("secret", [bytes(32), b"\xff" * 32, b"", b"\1" * 31])
def test_what_is_no_key_is_refused(secret: bytes) -> None:
    with pytest.raises(KeyFileError):
        PrivateKey(secret)


def test_keccak_of_nothing_is_the_known_value() -> None:
    assert keccak256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"


def test_many_signatures_are_recovered_as_one_by_one() -> None:
    digest = keccak256(b"digest")
    keys = [PrivateKey(bytes([number]) * 32) for number in range(1, 20)]
    signed = [(digest, key.sign(digest)) for key in keys]
    wrong = [(digest, bytes(65)), (digest[:31], signed[0][1]), (digest, signed[0][1][:64] + b"\x02"), (digest, b"")]
    assert recover_addresses([*signed, *wrong]) == [key.address for key in keys] + [None] * len(wrong)
    assert recover_addresses([]) == []

"""Tests keys in a real SoftHSM token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.consensus.bft.signatures import message_author
from ophion.errors import KeyFileError
from ophion.native.crypto import keccak256
from ophion.wallet.pkcs11_signer import Pkcs11Key, Pkcs11Signer
from tests.unit.wallet.softhsm import LIBRARY, PIN, REASON, TOKEN, SoftHsm

pytestmark = pytest.mark.skipif(not LIBRARY, reason=REASON)


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SoftHsm]:
    pytest.importorskip("pkcs11", reason="python-pkcs11 is not installed")
    found = SoftHsm(tmp_path_factory.mktemp("hsm"), "validator", "other:secp256r1", "twice", "twice")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTHSM2_CONF", str(found.config))
        yield found


def _key(label: str = "validator", slot: str = TOKEN, pin: str = PIN, library: str = LIBRARY) -> Pkcs11Key:
    return Pkcs11Key(Path(library), slot, label, pin)


def test_signatures_are_those_of_the_public_key(token: SoftHsm) -> None:
    signer = Pkcs11Signer(_key())
    for number in range(50):
        digest = keccak256(b"%d" % number)
        assert message_author(digest, signer.sign(digest)) == signer.address
    signer.close()
    digest = keccak256(b"after the session ended")
    assert message_author(digest, signer.sign(digest)) == signer.address
    signer.close()


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (_key(label="nothing"), "the token has no private keys with this label"),
        (_key(label="twice"), "the token has 2 private keys with this label"),
        (_key(label="other"), "not on the curve secp256k1"),
        (_key(slot="empty"), "no token in this slot; slots with a token: .*ophion-test"),
        (_key(pin="9999"), "PinIncorrect"),
        (_key(library="/nonexistent.so"), "nonexistent"),
    ],
)
def test_an_unusable_key_is_one_clear_error(token: SoftHsm, key: Pkcs11Key, reason: str) -> None:
    with pytest.raises(KeyFileError, match=reason):
        Pkcs11Signer(key)


def test_the_pin_is_not_shown(token: SoftHsm) -> None:
    assert PIN not in repr(_key())

"""Tests keys from a mnemonic."""

from __future__ import annotations

import pytest

from ophion.chainspec.dev_network import MNEMONIC, MNEMONIC_ACCOUNTS
from ophion.dev.mnemonic import MnemonicError, derived_keys
from ophion.native.crypto import PrivateKey

PATH = "m/44'/60'/0'/0/"


def test_the_published_accounts_come_out() -> None:
    keys = derived_keys(MNEMONIC, PATH, len(MNEMONIC_ACCOUNTS))
    assert keys == [account.private_key for account in MNEMONIC_ACCOUNTS]


def test_another_mnemonic_known_from_elsewhere() -> None:
    words = "candy maple cake sugar pudding cream honey rich smooth crumble sweet treat"
    first = PrivateKey(derived_keys(words, PATH, 1)[0])
    assert first.address.hex() == "627306090abab3a6e1400e9345bc60c78a8bef57"


def test_a_path_decides_and_may_be_written_with_h() -> None:
    assert derived_keys(MNEMONIC, "m/44h/60h/0h/0", 1) == derived_keys(MNEMONIC, PATH, 1)
    assert derived_keys(MNEMONIC, "m/44'/60'/1'/0", 1) != derived_keys(MNEMONIC, PATH, 1)


@pytest.mark.parametrize("path", ["44'/60'", "m/x", "m/1''", f"m/{2**31}"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(MnemonicError):
        derived_keys(MNEMONIC, path, 1)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (" ".join(["test"] * 12), "wrong checksum"),
        (" ".join(["test"] * 10 + ["junk", "test"]), "wrong checksum"),
        (" ".join(["test"] * 11 + ["junl"]), "Word 12 of the mnemonic, 'junl', .*did you mean .*junk"),
        (" ".join(["Test"] * 11 + ["junk"]), "Word 1 of the mnemonic, 'Test'"),
        (" ".join(["зоб"] * 12), "Word 1 of the mnemonic"),
    ],
)
def test_a_misspelt_mnemonic_is_refused(words: str, reason: str) -> None:
    with pytest.raises(MnemonicError, match=reason):
        derived_keys(words, PATH, 1)


@pytest.mark.parametrize(
    "words",
    [
        "legal winner thank year wave sausage worth useful legal winner thank yellow",
        "letter advice cage absurd amount doctor acoustic avoid letter advice cage absurd amount doctor acoustic avoid "
        "letter always",
        "zoo " * 23 + "vote",
    ],
)
def test_mnemonics_of_all_lengths_are_taken(words: str) -> None:
    assert len(derived_keys(words, PATH, 1)[0]) == 32


def test_words_must_be_as_many_as_a_mnemonic_has() -> None:
    with pytest.raises(MnemonicError, match="11 words"):
        derived_keys(" ".join(["test"] * 11), PATH, 1)

"""Mnemonics that Anvil makes of a number, and random mnemonics."""

from __future__ import annotations

import pytest

from ophion.cli.anvil.seeded import random_mnemonic, seeded_mnemonic
from ophion.dev.mnemonic import derived_keys


@pytest.mark.parametrize(
    ("seed", "mnemonic"),
    [  # answers of Anvil 1.7.1
        (1, "gesture car maximum regret pudding merry fatal electric sea grab crack social"),
        (2, "cabbage measure motor lazy return bind siren again diesel slight bike shock"),
        (12345678901234567890, "hole clean push vacuum tell trumpet capital spy custom alarm giggle pole"),
    ],
)
def test_a_seed_gives_the_mnemonic_of_anvil(seed: int, mnemonic: str) -> None:
    assert seeded_mnemonic(seed) == mnemonic


@pytest.mark.parametrize(("asked", "words"), [(12, 12), (15, 15), (18, 18), (21, 21), (24, 24), (13, 12)])
def test_a_random_mnemonic_is_valid_and_new(asked: int, words: int) -> None:
    first, second = random_mnemonic(asked), random_mnemonic(asked)
    assert len(first.split()) == words
    assert first != second
    assert derived_keys(first, "m/44'/60'/0'/0/", 1) != derived_keys(second, "m/44'/60'/0'/0/", 1)

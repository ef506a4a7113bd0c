"""Tests addresses as text and bytes. The checksums are the examples of EIP-55."""

from __future__ import annotations

import pytest

from ophion.abi.addresses import address_bytes, checksum_address, shortened
from ophion.errors import AbiError


@pytest.mark.parametrize(
    "text",
    [
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    ],
)
def test_text_has_the_checksum(text: str) -> None:
    assert checksum_address(address_bytes(text.lower())) == text


@pytest.mark.parametrize("value", ["", "0x", "0x12", "5a" * 20, "0x" + "zz" * 20, b"short", None])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(AbiError, match="is not an address"):
        address_bytes(value)


def test_long_values_are_shortened() -> None:
    assert len(shortened("x" * 200)) == 80

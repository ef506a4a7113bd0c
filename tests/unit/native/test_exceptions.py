"""Tests the conversion of extension errors to Ophion errors."""

from __future__ import annotations

import pytest

from ophion import errors
from ophion.native import exceptions


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (exceptions.StorageError("no table"), errors.StorageError, "no table"),
        (
            exceptions.StorageError("Input/output error (os error 5)"),
            errors.StorageError,
            "Input/output error (os error 5): the disk is full, or it fails",
        ),
        (exceptions.MissingState("root 0x01"), errors.MissingStateError, "root 0x01"),
        (exceptions.DecodeError("header: too short"), errors.DecodeError, "header: too short"),
        (exceptions.InvalidBody("transaction 3: nonce"), errors.InvalidBlock, "Invalid block: transaction 3: nonce"),
        (exceptions.NotDownloaded("block 7"), errors.BlockNotDownloaded, "block 7"),
        (exceptions.NativeError("other"), errors.OphionError, "other"),
    ],
)
def test_each_kind_has_its_exception(raised: exceptions.NativeError, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught, exceptions.translated():
        raise raised
    assert type(caught.value) is kind
    assert str(caught.value) == message


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(KeyError), exceptions.translated():
        raise KeyError("mine")

"""The extension's errors in our tree."""

from __future__ import annotations

import pytest

from ophion import errors
from ophion.native import failures


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (failures.StorageError("no table"), errors.StorageError, "no table"),
        (
            failures.StorageError("Input/output error (os error 5)"),
            errors.StorageError,
            "Input/output error (os error 5): the disk is full, or it fails",
        ),
        (failures.MissingState("root 0x01"), errors.MissingStateError, "root 0x01"),
        (failures.DecodeError("header: too short"), errors.DecodeError, "header: too short"),
        (failures.InvalidBody("transaction 3: nonce"), errors.InvalidBlock, "Invalid block: transaction 3: nonce"),
        (failures.NativeError("other"), errors.OphionError, "other"),
    ],
)
def test_each_kind_has_its_place(raised: failures.NativeError, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught, failures.translated():
        raise raised
    assert type(caught.value) is kind
    assert str(caught.value) == message


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(KeyError), failures.translated():
        raise KeyError("mine")

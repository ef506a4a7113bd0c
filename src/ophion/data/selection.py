"""Describes which rows and columns of a dataset to read, and in which number format."""

from __future__ import annotations

from msgspec import Struct

from ophion.data.dataset_types import Column, Dataset
from ophion.errors import CommandError
from ophion.native.tables import RowFilter

NUMBER_FORMS = ("binary", "string", "f64", "decimal")


class Rows(Struct, frozen=True):
    """Conditions on rows. A condition that is empty selects all rows. Addresses have 20 bytes, topics have 32 bytes."""

    addresses: tuple[bytes, ...] = ()
    topics: tuple[tuple[bytes, ...] | None, ...] = ()
    """Accepted topics by position; None means any topic."""
    senders: tuple[bytes, ...] = ()
    recipients: tuple[bytes, ...] = ()

    def filter(self) -> RowFilter:
        """Return the conditions as the `RowFilter` of the Rust extension."""
        return RowFilter(self.addresses, self.topics, self.senders, self.recipients)

    def check(self, dataset: Dataset) -> None:
        """Raise an error if a condition needs a column that the dataset does not have."""
        given = {
            "address": self.addresses,
            "topic": self.topics,
            "from": self.senders,
            "recipient": self.recipients,
        }
        for name, values in given.items():
            if values and name not in dataset.filters:
                known = ", ".join(f"--{one}" for one in dataset.filters) or "none"
                raise CommandError(f"The dataset {dataset.name} has no filter --{name}; it has: {known}")


class Format(Struct, frozen=True):
    """How the columns of a dataset represent 256-bit numbers and byte strings."""

    numbers: tuple[str, ...] = ("binary",)
    """Representations of 256-bit numbers to write."""
    hex: bool = False
    """Whether byte strings are written as hexadecimal text."""


def columns_of(dataset: Dataset, format: Format, names: tuple[str, ...] | None = None) -> tuple[Column, ...]:
    """Return the columns to read, in the dataset's order. A name selects its column in every number representation."""
    if names is not None:
        for name in names:
            if dataset.column(name) is None:
                known = ", ".join(column.name for column in dataset.columns)
                raise CommandError(f"The dataset {dataset.name} has no column '{name}'. Its columns: {known}")
        return tuple(column for column in dataset.columns if column.name in names)
    return tuple(column for column in dataset.columns if column.form is None or column.form in format.numbers)

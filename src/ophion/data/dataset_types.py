"""Types of datasets and their columns."""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct

SCHEMA_VERSION: Final = 1
"""Version of the columns of all datasets, in the metadata of every file. The version increases when a column is renamed
or retyped.
"""


class Source(Enum):
    """Origin of the rows of a dataset."""

    STORED = "stored blocks and receipts"
    EXECUTED = "blocks, executed again with a tracer"
    SEALED = "headers with their seals"
    MEMBER = "the node's own answers, which decrypt what it is a member of"


class ColumnType(Enum):
    """Data type of a column. The value is the name of the type in the Rust extension."""

    U32 = "u32"
    U64 = "u64"
    I64 = "i64"
    F64 = "f64"
    BOOL = "bool"
    DECIMAL = "decimal"
    ADDRESS = "fixed20"
    HASH = "fixed32"
    BLOOM = "fixed256"
    BINARY = "binary"
    TEXT = "text"


class Column(Struct, frozen=True):
    """A column of a dataset."""

    name: str
    type: ColumnType
    doc: str
    repeats: bool = False
    """Whether values repeat often, so that dictionary encoding makes files smaller."""
    form: str | None = None
    """Representation of a 256-bit number: binary, string, f64 or decimal."""


class Dataset(Struct, frozen=True):
    """A table with data of the chain, such as blocks or logs."""

    name: str
    doc: str
    source: Source
    columns: tuple[Column, ...]
    filters: tuple[str, ...] = ()
    """Filters that the dataset supports: address, topic, from, recipient."""

    @property
    def metadata(self) -> dict[str, str]:
        """Name and version of the dataset, for the metadata of files."""
        return {"ophion.dataset": self.name, "ophion.schema_version": str(SCHEMA_VERSION)}

    def column(self, name: str) -> Column | None:
        """Return the column with this name."""
        return next((column for column in self.columns if column.name == name), None)

"""The declared columns of each dataset are the columns that the extension fills."""

from __future__ import annotations

import pytest

from ophion.data.dataset_types import Source
from ophion.data.datasets import ALL, GROUPS, dataset_named, datasets_named
from ophion.errors import CommandError
from ophion.native.tables import table_columns


def test_declared_columns_are_those_of_the_extension() -> None:
    declared = {
        name: [(column.name, column.type.value) for column in one.columns]
        for name, one in ALL.items()
        if one.source in (Source.STORED, Source.EXECUTED)
    }
    assert declared == dict(table_columns())


def test_every_column_is_documented_and_named_once() -> None:
    for dataset in ALL.values():
        names = [column.name for column in dataset.columns]
        assert len(set(names)) == len(names)
        assert all(column.doc.endswith(".") for column in dataset.columns)


def test_groups_are_expanded_and_unknown_names_refused() -> None:
    assert [one.name for one in datasets_named(("logs", "state_diffs", "nonce_diffs"))] == [
        "logs",
        *GROUPS["state_diffs"],
    ]
    assert dataset_named("traces").source is Source.EXECUTED
    with pytest.raises(CommandError, match="There is no dataset 'log'. Known datasets: blocks, transactions, logs"):
        datasets_named(("log",))

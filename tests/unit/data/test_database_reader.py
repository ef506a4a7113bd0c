"""Tests rows of the database beyond the sizes of their columns, and the ranges in which blocks are read."""

from __future__ import annotations

import asyncio
import gc
import io
import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ophion.chainspec.dev_network import dev_document
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.data.database_reader import DatabaseReader
from ophion.data.dataset_types import Dataset
from ophion.data.datasets import ALL
from ophion.data.parquet import ParquetFile, write_parquet
from ophion.data.selection import NUMBER_FORMS, Format, Rows, columns_of
from ophion.node.datadir import DataDirectory
from ophion.testing.node_core import open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction

pa = pytest.importorskip("pyarrow", reason="the extra ophion[data] is not installed")
import pyarrow.parquet as parquet  # noqa: E402

FORMS = Format(NUMBER_FORMS)
BLOCK_GAS = 2**50


def roomy_genesis() -> Genesis:
    """Return the development network with a gas limit above 32 bits, as permissioned networks have it."""
    return parse_genesis(json.dumps({**dev_document("london"), "gasLimit": hex(BLOCK_GAS)}), is_dev=True)


def build(place: Path, blocks: Sequence[Sequence[bytes]], seconds: float) -> None:
    async def mine() -> None:
        for raws in blocks:
            await core.send(*raws)
            await core.seal(seconds)

    with open_core(place / "database", genesis=roomy_genesis()) as core:
        asyncio.run(mine())


def made(place: Path, blocks: Sequence[Sequence[bytes]], seconds: float = 1.0) -> DatabaseReader:
    """Build a chain in which the time between blocks is `seconds`, and open it."""
    with DataDirectory.open(place) as opened:
        opened.store()
    build(place, blocks, seconds)
    gc.collect()  # drops the last references to the database, so that it can be opened read-only
    return DatabaseReader(place, roomy_genesis)


def read(reader: DatabaseReader, dataset: Dataset, last: int, hex: bool = False) -> Any:
    """Return the rows of a dataset as an Arrow table, after a comparison with its Parquet file."""
    columns = columns_of(dataset, FORMS)
    batches = list(reader.batches(dataset, columns, 0, last, Rows(), hex))
    file = io.BytesIO()
    tables = reader.table_read(dataset)
    assert tables is not None
    write_parquet([ParquetFile(file, dataset, columns, hex, 2)], tables([(dataset, columns)], 0, last, Rows(), hex))
    found = parquet.read_table(io.BytesIO(file.getvalue()))
    if batches:
        assert found.to_pylist() == pa.Table.from_batches(batches).to_pylist()
    return found


def test_numbers_above_32_bits_are_null_and_never_cut_off(tmp_path: Path) -> None:
    call = legacy_transaction(DEV_KEYS[1], 0, gas=2**33 + 7, gas_price=10**9)
    with closing(made(tmp_path, [[call]], seconds=2.0**32)) as reader:
        (transaction,) = read(reader, ALL["transactions"], 1).to_pylist()
        blocks = read(reader, ALL["blocks"], 1).to_pylist()
        trace = read(reader, ALL["traces"], 1).to_pylist()[0]
    assert (transaction["gas_limit"], transaction["timestamp"]) == (2**33 + 7, None)
    assert (blocks[1]["gas_limit"] > 2**32, blocks[1]["timestamp"], blocks[0]["timestamp"]) == (True, None, 0)
    assert (trace["action_gas"], trace["result_gas_used"]) == (None, 0)


def test_ranges_end_before_they_hold_much_data(tmp_path: Path) -> None:
    """Documents in calls: several ranges are in memory at a time."""
    size, count = 100_000, 48

    def document(nonce: int) -> bytes:
        data = nonce.to_bytes(2, "big") * (size // 2)
        return legacy_transaction(DEV_KEYS[1], nonce, data=data, gas=5_000_000, gas_price=10**9)

    blocks = [[document(nonce) for nonce in range(first, first + 12)] for first in range(0, count, 12)]
    with closing(made(tmp_path, blocks)) as reader:
        ranges = reader.ranges(ALL["transactions"], 0, len(blocks))
        table = read(reader, ALL["transactions"], len(blocks))
    assert ranges == [(0, 3), (4, 4)]
    assert table["n_input_bytes"].to_pylist() == [size] * count
    assert [row[:2] for row in table["input"].to_pylist()] == [nonce.to_bytes(2, "big") for nonce in range(count)]


@pytest.mark.parametrize("hex", [False, True])
@pytest.mark.parametrize("name", [name for name in ALL if name not in ("validators", "private_transactions")])
def test_a_file_of_an_empty_chain_has_the_schema(tmp_path: Path, name: str, hex: bool) -> None:
    with closing(made(tmp_path, [])) as reader:
        table = read(reader, ALL[name], 0, hex)
    assert table.column_names == [column.name for column in columns_of(ALL[name], FORMS)]
    assert table.num_rows == (name == "blocks")

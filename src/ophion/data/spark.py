"""Datasets in Apache Spark, through its Python Data Source API.

    from ophion.data.spark import register
    register(spark)
    spark.read.format("ophion").option("path", "data").option("dataset", "traces").load()

The driver splits the chain into block ranges with similar numbers of transactions, one partition each. An executor
opens the database by its path, or queries a node, and returns Arrow batches. If an executor fails, Spark reads its
partition again. Importing this module needs the package pyspark, from version 4 on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from ophion.data.arrow import arrow_schema
from ophion.data.data_frames import ChainTables, open_chain
from ophion.data.dataset_types import Dataset
from ophion.data.datasets import dataset_named
from ophion.data.optional_packages import require
from ophion.data.selection import NUMBER_FORMS, Format, Rows, columns_of
from ophion.errors import CommandError

_OPTIONS: Final = (
    "path",
    "rpc",
    "dataset",
    "genesis",
    "startblock",
    "endblock",
    "blocksperpartition",
    "address",
    "u256",
    "hex",
)


class BlockRange(InputPartition):
    """A partition: the blocks from `first` to `last`, and the source that contains them."""

    def __init__(self, source: str, first: int, last: int, last_hash: bytes) -> None:
        super().__init__((first, last))
        self.source = source
        self.first = first
        self.last = last
        self.last_hash = last_hash


class Plan:
    """The checked options of one Spark read: source, dataset and block range."""

    def __init__(self, options: Mapping[str, str]) -> None:
        unknown = sorted({name.lower() for name in options} - {*_OPTIONS})
        if unknown:
            raise CommandError(f"Unknown option '{unknown[0]}' of format ophion. Known: {', '.join(_OPTIONS)}")
        given = {name.lower(): value for name, value in options.items()}
        self.sources = _sources(given)
        self.genesis = given.get("genesis")
        self.dataset: Dataset = dataset_named(given.get("dataset", "transactions"))
        self.first = _number(given, "startblock", 0)
        self.end = _number(given, "endblock", None)
        self.blocks_per_partition = _number(given, "blocksperpartition", None)
        self.hex = given.get("hex", "false").lower() == "true"
        forms = tuple(given.get("u256", "decimal").replace(" ", "").split(","))
        if not set(forms) <= set(NUMBER_FORMS):
            raise CommandError(f"The option u256 names forms of numbers: {', '.join(NUMBER_FORMS)}")
        self.columns = columns_of(self.dataset, Format(forms))
        self.rows = Rows(tuple(_address(one) for one in given.get("address", "").split(",") if one))
        self.rows.check(self.dataset)

    def open(self, source: str) -> ChainTables:
        """Open the chain in a data path, or the chain of a node at a URL."""
        return open_chain(source, genesis=self.genesis)

    def spark_schema(self) -> Any:
        """Return the Arrow schema with types that Spark supports. Spark has no unsigned numbers and no fixed-size byte
        strings.
        """
        pa = require("pyarrow")
        types: dict[Any, Any] = {pa.uint32(): pa.int64(), pa.uint64(): pa.int64()}
        fields = []
        for field in arrow_schema(self.dataset, self.columns, self.hex):
            kind = pa.binary() if pa.types.is_fixed_size_binary(field.type) else types.get(field.type, field.type)
            fields.append(pa.field(field.name, kind))
        return pa.schema(fields)


class OphionDataSource(DataSource):
    """The Spark data source with the format name `ophion`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "ophion"

    def schema(self) -> Any:
        """Return the columns of the dataset."""
        return from_arrow_schema(Plan(self.options).spark_schema())

    def reader(self, schema: Any) -> OphionReader:
        """Return the reader of the dataset."""
        return OphionReader(Plan(self.options))


class OphionReader(DataSourceReader):
    """Plans block ranges on the driver, and reads the ranges on executors."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def partitions(self) -> list[BlockRange]:
        """Return one partition per block range. If the options name several nodes, the partitions are spread over these
        nodes.
        """
        plan = self._plan
        with closing(plan.open(plan.sources[0])) as chain:
            reader = chain.reader
            last = reader.head().number if plan.end is None else min(reader.head().number, plan.end - 1)
            if plan.first > last:
                raise CommandError(f"There is no block {plan.first} to read: the last block is {last}.")
            size = plan.blocks_per_partition
            ranges = (
                reader.ranges(plan.dataset, plan.first, last)
                if size is None
                else [(at, min(at + size - 1, last)) for at in range(plan.first, last + 1, size)]
            )
            found = []
            for turn, (start, end) in enumerate(ranges):
                block = reader.block(end)
                if block is None:
                    raise CommandError(f"Block {end} is not part of the chain any more.")
                found.append(BlockRange(plan.sources[turn % len(plan.sources)], start, end, block.hash))
            return found

    def read(self, partition: BlockRange) -> Iterator[Any]:
        """Yield the Arrow batches of a partition."""
        plan, schema = self._plan, self._plan.spark_schema()
        with closing(plan.open(partition.source)) as chain:
            block = chain.reader.block(partition.last)
            if block is None or block.hash != partition.last_hash:
                raise CommandError(
                    f"{partition.source} has another block {partition.last} than the node that planned the read, or"
                    " none. Use copies of one chain, or end before the last blocks (endBlock)."
                )
            for batch in chain.reader.batches(
                plan.dataset, plan.columns, partition.first, partition.last, plan.rows, plan.hex
            ):
                yield batch.cast(schema)


def register(spark: Any) -> None:
    """Register the format `ophion` with a Spark session."""
    spark.dataSource.register(OphionDataSource)


def _sources(given: Mapping[str, str]) -> list[str]:
    if ("path" in given) == ("rpc" in given):
        raise CommandError("Name the chain by one option: path, or rpc with the URLs of one or more nodes.")
    if "path" in given:
        return [str(Path(given["path"]).absolute())]
    return [one.strip() for one in given["rpc"].split(",")]


def _number(given: Mapping[str, str], name: str, default: Any) -> Any:
    text = given.get(name)
    if text is None:
        return default
    if not text.isdigit():
        raise CommandError(f"The option {name} must be a number but was '{text}'.")
    return int(text)


def _address(text: str) -> bytes:
    try:
        found = bytes.fromhex(text.strip().removeprefix("0x"))
    except ValueError:
        found = b""
    if len(found) != 20:
        raise CommandError(f"The option address must have 20 bytes, in hexadecimal: '{text}'")
    return found

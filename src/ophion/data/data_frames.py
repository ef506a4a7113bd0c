"""`open_chain`: datasets of a chain as Arrow tables and data frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ophion.abi.addresses import shortened
from ophion.abi.interface import EventType, signature_entry
from ophion.data.arrow import arrow_schema
from ophion.data.dataset_types import Dataset
from ophion.data.datasets import dataset_named
from ophion.data.optional_packages import require
from ophion.data.selection import NUMBER_FORMS, Format, Rows, columns_of
from ophion.errors import AbiError, CommandError

if TYPE_CHECKING:
    from ophion.data.table_reader import TableReader

Text = str | bytes
_OPTIONS = ("blocks", "address", "event", "topics", "sender", "recipient", "columns", "numbers", "hex")
"""Arguments of `ChainTables.dataset`, and so of the method of each dataset."""


class UnknownDataset(CommandError, AttributeError):
    """Raised for an unknown name of a dataset."""


def open_chain(source: str | Path, *, genesis: str | Path | None = None) -> ChainTables:
    """Open the chain in a data path, or the chain of a node at a URL.

    `genesis` is the genesis file of the network. Datasets that execute blocks need this file, except on the dev
    network.
    """
    paths: tuple[tuple[str, object], ...] = ("source", source), ("genesis", "" if genesis is None else genesis)
    for name, value in paths:
        if not isinstance(value, str | os.PathLike) or "\0" in os.fsdecode(value):
            raise CommandError(f"{name}: {shortened(value)} is not a path{' or a URL' if name == 'source' else ''}")
    if str(source).startswith(("http://", "https://")):
        from ophion.data.rpc_reader import RpcReader

        return ChainTables(RpcReader(str(source)))
    from ophion.chainspec.dev_network import dev_genesis
    from ophion.chainspec.genesis import Genesis, parse_genesis
    from ophion.chainspec.network_names import DEFAULT_DEV_FORK
    from ophion.data.database_reader import DatabaseReader

    def load() -> Genesis:
        if genesis is None:
            return dev_genesis(DEFAULT_DEV_FORK)
        try:
            return parse_genesis(Path(genesis).read_bytes())
        except OSError as error:
            raise CommandError(f"Unable to read the genesis file {genesis}: {error.strerror}") from error

    return ChainTables(DatabaseReader(Path(source), load, genesis is None))


def event_topic(event: str) -> bytes:
    """Return the topic of an event, given by its signature or its hash, or by the name `Transfer` for token
    transfers.
    """
    if not isinstance(event, str):
        raise CommandError(f"event: {shortened(event)} is not the signature or the hash of an event")
    if event.startswith("0x"):
        return _bytes(event, 32, "event")
    if "(" not in event:
        known = {"Transfer": "Transfer(address,address,uint256)", "Approval": "Approval(address,address,uint256)"}
        if event not in known:
            raise CommandError(f"The event '{event}' has no types. Write them: {event}(address,uint256)")
        event = known[event]
    try:
        return EventType(signature_entry(f"event {event}")).topic
    except AbiError as error:
        raise CommandError(f"event: {error.message}") from error


def _bytes(value: Text, length: int, what: str) -> bytes:
    try:
        found = bytes.fromhex(value.removeprefix("0x")) if isinstance(value, str) else bytes(memoryview(value))
    except (TypeError, ValueError):
        found = b""
    if len(found) != length:
        raise CommandError(f"{what} must have {length} bytes, in hexadecimal: {shortened(value)}")
    return found


def _addresses(given: Text | Sequence[Text] | None, what: str) -> tuple[bytes, ...]:
    return () if given is None else tuple(_bytes(one, 20, what) for one in _several(given, what))


def _several(given: Any, what: str) -> list[Text]:
    """Return one or several values as a list. An empty list is an error, because it would select all rows."""
    if isinstance(given, str | bytes):
        return [given]
    if not isinstance(given, Iterable):
        raise CommandError(f"{what}: {shortened(given)} is neither text nor a list")
    found = list(given)
    if not found:
        raise CommandError(f"{what}: an empty list selects nothing. Leave it out to select all rows.")
    return found


def _names(given: Any, what: str) -> tuple[str, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise CommandError(f"{what}: {shortened(given)} is not a list of names")
    return tuple(given)


def _block_range(given: Any) -> tuple[int, int] | None:
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2 or not all(type(one) is int for one in given):
        raise CommandError(f"blocks: {shortened(given)} is not a range. Give the first and the last block: (0, 100)")
    first, last = given
    if not 0 <= first <= last:
        raise CommandError(f"blocks=({first}, {last}) is no range")
    return first, last


class ChainTables:
    """The datasets of one chain. The object is a context manager."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader

    @property
    def reader(self) -> TableReader:
        """The source from which rows are read."""
        return self._reader

    def dataset(
        self,
        name: str,
        *,
        blocks: tuple[int, int] | None = None,
        address: Text | Sequence[Text] | None = None,
        event: str | None = None,
        topics: Sequence[Text | Sequence[Text] | None] = (),
        sender: Text | Sequence[Text] | None = None,
        recipient: Text | Sequence[Text] | None = None,
        columns: Sequence[str] | None = None,
        numbers: Sequence[str] = ("binary",),
        hex: bool = False,
    ) -> Selection:
        """Select rows and columns; nothing is read yet. `blocks` includes both ends."""
        dataset = dataset_named(name)
        wanted: list[tuple[bytes, ...] | None] = [
            None if any is None else tuple(_bytes(one, 32, "topic") for one in _several(any, "topic"))
            for any in (topics if isinstance(topics, list | tuple) else _names(topics, "topics"))
        ]
        if event is not None:
            wanted[:1] = [(event_topic(event),)]
        rows = Rows(
            addresses=_addresses(address, "address"),
            topics=tuple(wanted),
            senders=_addresses(sender, "sender"),
            recipients=_addresses(recipient, "recipient"),
        )
        rows.check(dataset)
        forms = _names(numbers, "numbers")
        unknown = [form for form in forms if form not in NUMBER_FORMS]
        if unknown:
            raise CommandError(f"Unknown form of numbers '{unknown[0]}'. Known forms: {', '.join(NUMBER_FORMS)}")
        names = None if columns is None else _names(columns, "columns")
        return Selection(self._reader, dataset, rows, Format(forms, hex), names, _block_range(blocks))

    def __getattr__(self, name: str) -> Callable[..., Selection]:
        """Return the method of a dataset, such as `.logs(…)` or `.transactions(…)`."""
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            dataset_named(name)
        except CommandError as error:
            raise UnknownDataset(error.message) from None

        def select(**options: Any) -> Selection:
            unknown = [one for one in options if one not in _OPTIONS]
            if unknown:
                raise CommandError(f"{name} has no option {unknown[0]}. Options: {', '.join(_OPTIONS)}")
            return self.dataset(name, **options)

        return select

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()

    def __enter__(self) -> ChainTables:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Selection:
    """Rows of one dataset, with Arrow's C stream interface (`__arrow_c_stream__`)."""

    def __init__(
        self,
        reader: TableReader,
        dataset: Dataset,
        rows: Rows,
        format: Format,
        names: tuple[str, ...] | None,
        blocks: tuple[int, int] | None,
    ) -> None:
        self._reader = reader
        self._dataset = dataset
        self._rows = rows
        self._hex = format.hex
        self._columns = columns_of(dataset, format, names)
        self._blocks = blocks

    @property
    def schema(self) -> Any:
        """The Arrow schema of the selected columns."""
        return arrow_schema(self._dataset, self._columns, self._hex)

    def batches(self) -> Iterator[Any]:
        """Yield Arrow record batches. The memory in use is bounded."""
        head = self._reader.head().number
        first, last = (0, head) if self._blocks is None else self._blocks
        return self._reader.batches(self._dataset, self._columns, first, min(last, head), self._rows, self._hex)

    def to_reader(self) -> Any:
        """Return a `pyarrow.RecordBatchReader` that reads rows on demand."""
        return require("pyarrow").RecordBatchReader.from_batches(self.schema, self.batches())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """Return the selected rows as a `pyarrow.Table`."""
        return require("pyarrow").Table.from_batches(list(self.batches()), self.schema)

    def to_pandas(self) -> Any:
        """Return the selected rows as a `pandas.DataFrame`."""
        require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the selected rows as a `polars.DataFrame`."""
        return require("polars").from_arrow(self.to_arrow())

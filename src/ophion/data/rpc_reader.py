"""Reads datasets from any node over JSON-RPC, as far as the node's methods allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ophion.data import rpc_rows
from ophion.data.arrow import arrow_schema
from ophion.data.dataset_types import Column, Dataset
from ophion.data.optional_packages import require
from ophion.data.rpc_rows import Row
from ophion.data.selection import Rows
from ophion.data.table_reader import BlockRef, Finality
from ophion.errors import CommandError
from ophion.primitives.hexcodec import data as hex_text
from ophion.runtime.blocking_json_rpc import JsonRpcClient

_TIMEOUT_S: Final = 120.0
_BLOCKS_PER_RANGE: Final = 50
_DEPTH: Final = 64
_FLEXIBLE_MARKERS: Final = ("0x" + "7d".rjust(40, "0"),)
"""Address that the privacy marker transactions of flexible groups call."""


class RpcReader:
    """A `TableReader` that calls any node over JSON-RPC."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._rpc = JsonRpcClient(url, token, timeout_s=_TIMEOUT_S)
        self._ask = self._rpc.call
        self._markers: str | None = None
        with self._rpc.reading("eth_chainId"):
            self.chain_id = int(self._ask("eth_chainId"), 16)

    def head(self) -> BlockRef:
        """Return number and hash of the newest block."""
        block = self._ask("eth_getBlockByNumber", "latest", False)
        with self._rpc.reading("the latest block"):
            return BlockRef(int(block["number"], 16), bytes.fromhex(block["hash"][2:]))

    def block(self, number: int) -> BlockRef | None:
        """Return number and hash of the canonical block with this number."""
        block = self._ask("eth_getBlockByNumber", hex(number), False)
        with self._rpc.reading(f"block {number}"):
            return None if block is None else BlockRef(number, bytes.fromhex(block["hash"][2:]))

    def finality(self) -> Finality:
        """Return a finality rule that counts later blocks, because a node does not report its consensus over RPC."""
        return Finality(_DEPTH, f"the consensus of {self._rpc.address} is unknown; {_DEPTH} blocks are waited for")

    def ranges(self, dataset: Dataset, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Split blocks into ranges of equal length."""
        starts = range(first, last + 1, _BLOCKS_PER_RANGE)
        return [(start, min(start + _BLOCKS_PER_RANGE - 1, last)) for start in starts]

    def prepare(self, datasets: Sequence[Dataset]) -> None:
        """Do nothing, because the node executes blocks."""

    def table_read(self, dataset: Dataset) -> None:
        """Return None, because this reader produces only record batches."""

    def batches(
        self, dataset: Dataset, columns: Sequence[Column], first: int, last: int, rows: Rows, hex: bool
    ) -> Iterator[Any]:
        """Yield one Arrow record batch for each block range from `first` to `last`."""
        pa = require("pyarrow")
        schema = arrow_schema(dataset, columns, hex)
        for start, end in self.ranges(dataset, first, last):
            with self._rpc.reading(f"{dataset.name} of blocks {start} to {end}"):
                found = list(self._rows(dataset.name, start, end, rows))
                values = [[_shown(row[column.name], hex) for row in found] for column in columns]
                arrays = [pa.array(one, field.type) for one, field in zip(values, schema, strict=True)]
                batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            yield batch

    def _rows(self, name: str, first: int, last: int, rows: Rows) -> Iterator[Row]:
        numbers = range(first, last + 1)
        if name == "blocks":
            yield from (rpc_rows.block_row(self._block(number), self.chain_id) for number in numbers)
        elif name == "transactions":
            for number in numbers:
                yield from self._transactions(number, rows)
        elif name == "private_transactions":
            for number in numbers:
                yield from self._private_transactions(number, rows)
        elif name in _LOG_ROWS:
            yield from self._logs(_LOG_ROWS[name], first, last, rows)
        elif name in rpc_rows.TRACE_ROWS:
            for number in numbers[1 if first == 0 else 0 :]:
                traces = self._ask("trace_block", hex_number(number))
                yield from rpc_rows.TRACE_ROWS[name](traces, rows, self.chain_id)
        elif name.endswith("_diffs"):
            for number in numbers[1 if first == 0 else 0 :]:
                replayed = self._ask("trace_replayBlockTransactions", hex_number(number), ["stateDiff"])
                for index, one in enumerate(replayed):
                    yield from rpc_rows.diff_rows(name, number, index, one, rows, self.chain_id)
        else:
            raise CommandError(f"The dataset {name} cannot be read over JSON-RPC; use --data-path.")

    def _block(self, number: int, full: bool = False) -> Any:
        block = self._ask("eth_getBlockByNumber", hex_number(number), full)
        if block is None:
            raise CommandError(f"{self._rpc.address} has no block {number}.")
        return block

    def _transactions(self, number: int, rows: Rows) -> Iterator[Row]:
        block = self._block(number, full=True)
        if not block["transactions"]:
            return
        receipts = self._ask("eth_getBlockReceipts", hex_number(number))
        raws = self._rpc.results([("eth_getRawTransactionByHash", [tx["hash"]]) for tx in block["transactions"]])
        sizes = [(len(raw) - 2) // 2 for raw in raws]
        yield from rpc_rows.transaction_rows(block, receipts, sizes, rows, self.chain_id)

    def _private_transactions(self, number: int, rows: Rows) -> Iterator[Row]:
        """Yield the rows of the private transactions that the node can read. For other private transactions, the node
        answers null.
        """
        markers = {self._marker_address(), *_FLEXIBLE_MARKERS}
        block = self._block(number, full=True)
        hashes = [tx["hash"] for tx in block["transactions"] if tx["to"] in markers]
        receipts = self._rpc.results([("priv_getTransactionReceipt", [hash]) for hash in hashes])
        known = [(hash, receipt) for hash, receipt in zip(hashes, receipts, strict=True) if receipt is not None]
        payloads = self._rpc.results([("priv_getPrivateTransaction", [hash]) for hash, _ in known])
        for (_, receipt), payload in zip(known, payloads, strict=True):
            row = rpc_rows.private_transaction_row(block, receipt, payload, self.chain_id)
            if rpc_rows.selects(rows, row["from_address"], row["to_address"]):
                yield row

    def _marker_address(self) -> str:
        """Return the address that the node's privacy marker transactions call. Raises if the node has no private
        transactions.
        """
        if self._markers is None:
            self._markers = str(self._ask("priv_getPrivacyPrecompileAddress")).lower()
        return self._markers

    def _logs(
        self, make: Callable[[Any, int | None, int], Row | None], first: int, last: int, rows: Rows
    ) -> Iterator[Row]:
        query: dict[str, Any] = {"fromBlock": hex_number(first), "toBlock": hex_number(last)}
        if rows.addresses:
            query["address"] = [hex_text(one) for one in rows.addresses]
        if rows.topics:
            query["topics"] = [None if any is None else [hex_text(one) for one in any] for any in rows.topics]
        times: dict[str, int | None] = {}
        for log in self._ask("eth_getLogs", query):
            number = log["blockNumber"]
            if number not in times:
                given = log.get("blockTimestamp") or self._block(int(number, 16))["timestamp"]
                times[number] = rpc_rows.narrow(given)
            row = make(log, times[number], self.chain_id)
            if row is not None:
                yield row

    def stop(self) -> None:
        """Do nothing: running requests need not be stopped, because they have a timeout."""

    def close(self) -> None:
        """Close the connections."""
        self._rpc.close()


def hex_number(number: int) -> str:
    """Return a number as a JSON-RPC quantity."""
    return hex(number)


def _shown(value: Any, hex: bool) -> Any:
    return hex_text(value) if hex and isinstance(value, bytes) else value


_LOG_ROWS: Final[dict[str, Callable[[Any, int | None, int], Row | None]]] = {
    "logs": rpc_rows.log_row,
    "erc20_transfers": rpc_rows.erc20_row,
    "erc721_transfers": rpc_rows.erc721_row,
}

"""Reads datasets from any node over JSON-RPC, as far as its methods allow."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from ophion.data import rpc_rows
from ophion.data.arrow import arrow_schema
from ophion.data.datasets import Column, Dataset
from ophion.data.packages import require
from ophion.data.reader import BlockRef, Finality
from ophion.data.rpc_rows import Row
from ophion.data.selection import Rows
from ophion.errors import CommandError
from ophion.primitives.hexcodec import data as hex_text
from ophion.runtime.terminal_text import escape_line

_TIMEOUT_S: Final = 120.0
_MAX_REPLY_BYTES: Final = 512 * 2**20
_BLOCKS_PER_RANGE: Final = 50
_DEPTH: Final = 64


class RpcReader:
    """A `TableReader` over HTTP; each thread has a connection of its own."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        self._url = url
        self._parts = parts
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._local = threading.local()
        self.chain_id = int(self._ask("eth_chainId"), 16)

    def head(self) -> BlockRef:
        """Return the newest block."""
        block = self._ask("eth_getBlockByNumber", "latest", False)
        return BlockRef(int(block["number"], 16), bytes.fromhex(block["hash"][2:]))

    def block(self, number: int) -> BlockRef | None:
        """Return a canonical block."""
        block = self._ask("eth_getBlockByNumber", hex(number), False)
        return None if block is None else BlockRef(number, bytes.fromhex(block["hash"][2:]))

    def finality(self) -> Finality:
        """Return a finality by depth, because a node does not report its consensus over RPC."""
        return Finality(_DEPTH, f"the consensus of {self._url} is unknown; {_DEPTH} blocks are waited for")

    def ranges(self, dataset: Dataset, first: int, last: int) -> Sequence[tuple[int, int]]:
        """Split blocks evenly."""
        starts = range(first, last + 1, _BLOCKS_PER_RANGE)
        return [(start, min(start + _BLOCKS_PER_RANGE - 1, last)) for start in starts]

    def batches(
        self, dataset: Dataset, columns: Sequence[Column], first: int, last: int, rows: Rows, hex: bool
    ) -> Iterator[Any]:
        """Yield one record batch for each range."""
        pa = require("pyarrow")
        schema = arrow_schema(dataset, columns, hex)
        for start, end in self.ranges(dataset, first, last):
            found = list(self._rows(dataset.name, start, end, rows))
            values = [[_shown(row[column.name], hex) for row in found] for column in columns]
            arrays = [pa.array(one, field.type) for one, field in zip(values, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _rows(self, name: str, first: int, last: int, rows: Rows) -> Iterator[Row]:
        numbers = range(first, last + 1)
        if name == "blocks":
            yield from (rpc_rows.block_row(self._block(number), self.chain_id) for number in numbers)
        elif name == "transactions":
            for number in numbers:
                yield from self._transactions(number, rows)
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
            raise CommandError(f"{self._url} has no block {number}.")
        return block

    def _transactions(self, number: int, rows: Rows) -> Iterator[Row]:
        block = self._block(number, full=True)
        if not block["transactions"]:
            return
        receipts = self._ask("eth_getBlockReceipts", hex_number(number))
        raws = self._ask_many("eth_getRawTransactionByHash", [tx["hash"] for tx in block["transactions"]])
        sizes = [(len(raw) - 2) // 2 for raw in raws]
        yield from rpc_rows.transaction_rows(block, receipts, sizes, rows, self.chain_id)

    def _logs(self, make: Callable[[Any, int, int], Row | None], first: int, last: int, rows: Rows) -> Iterator[Row]:
        query: dict[str, Any] = {"fromBlock": hex_number(first), "toBlock": hex_number(last)}
        if rows.addresses:
            query["address"] = [hex_text(one) for one in rows.addresses]
        if rows.topics:
            query["topics"] = [None if any is None else [hex_text(one) for one in any] for any in rows.topics]
        times: dict[str, int] = {}
        for log in self._ask("eth_getLogs", query):
            number = log["blockNumber"]
            if number not in times:
                given = log.get("blockTimestamp") or self._block(int(number, 16))["timestamp"]
                times[number] = int(given, 16)
            row = make(log, times[number], self.chain_id)
            if row is not None:
                yield row

    # --- requests ---

    def _ask(self, method: str, *params: Any) -> Any:
        reply = self._post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return self._result(method, reply)

    def _ask_many(self, method: str, params: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(params), 500):
            part = params[start : start + 500]
            requests = [{"jsonrpc": "2.0", "id": at, "method": method, "params": [one]} for at, one in enumerate(part)]
            replies = self._post(requests)
            if not isinstance(replies, list):
                raise CommandError(f"{self._url} does not answer batches of {method}.")
            by_id = {reply.get("id"): reply for reply in replies if isinstance(reply, dict)}
            found.extend(self._result(method, by_id.get(at)) for at in range(len(part)))
        return found

    def _result(self, method: str, reply: Any) -> Any:
        if not isinstance(reply, dict) or not ("result" in reply or "error" in reply):
            raise CommandError(f"{self._url} does not answer {method} in JSON-RPC.")
        if reply.get("error"):
            message = reply["error"].get("message") if isinstance(reply["error"], dict) else reply["error"]
            raise CommandError(f"{self._url} refuses {method}: {escape_line(str(message))}")
        return reply["result"]

    def _post(self, body: Any) -> Any:
        connection = getattr(self._local, "connection", None)
        try:
            if connection is None:
                is_tls = self._parts.scheme == "https"
                kind = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
                connection = kind(self._parts.hostname or "", self._parts.port, timeout=_TIMEOUT_S)
                self._local.connection = connection
            connection.request("POST", self._path, orjson.dumps(body), self._headers)
            with connection.getresponse() as response:
                content = response.read(_MAX_REPLY_BYTES)
            if response.status != 200:
                raise CommandError(f"{self._url} answers {response.status} {escape_line(response.reason)}.")
            return orjson.loads(content)
        except (OSError, http.client.HTTPException) as error:
            self._local.connection = None
            raise CommandError(f"{self._url} cannot be reached: {error}") from error
        except ValueError as error:
            raise CommandError(f"{self._url} does not answer in JSON.") from error

    def stop(self) -> None:
        """Do nothing: requests end by themselves."""

    def close(self) -> None:
        """Do nothing: each connection is closed when its thread ends."""


def hex_number(number: int) -> str:
    """Return a number as JSON-RPC quantity."""
    return hex(number)


def _shown(value: Any, hex: bool) -> Any:
    return hex_text(value) if hex and isinstance(value, bytes) else value


_LOG_ROWS: Final[dict[str, Callable[[Any, int, int], Row | None]]] = {
    "logs": rpc_rows.log_row,
    "erc20_transfers": rpc_rows.erc20_row,
    "erc721_transfers": rpc_rows.erc721_row,
}

"""SQL queries of clients, executed in a separate process (`ophion sql --serve`).

The process starts with the first query and is ended when a query takes too long, so no query can block the node or
outlive its limit. Queries are executed one after the other; a few may wait.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson
from msgspec import Struct

from ophion.errors import RpcError
from ophion.rpc.errors import LIMIT_EXCEEDED_CODE, SERVER_ERROR_CODE

MAX_WAITING: Final = 8
_MAX_ANSWER_BYTES: Final = 64 * 2**20
_START_TIMEOUT_S: Final = 60.0
"""Timeout in seconds for the start of the SQL process: it imports DuckDB and opens the database, perhaps on a busy
machine.
"""
_MAX_REASON_BYTES: Final = 500
_ERROR: Final = b'{"error":'


class SqlLimits(Struct, frozen=True):
    """Limits of one SQL query."""

    timeout_s: float = 10.0
    max_rows: int = 10_000
    max_memory_mb: int = 512


class SqlQueries:
    """Sends queries to the SQL process and restarts the process after a failure. The process ends with the node."""

    name = "sql"

    def __init__(self, chain_options: Sequence[str], limits: SqlLimits) -> None:
        """Create the service. `chain_options` are the command-line options that select the chain: data path and
        genesis.
        """
        self._command = (
            sys.executable, "-m", "ophion", "sql", "--serve", *chain_options,
            f"--serve-max-rows={limits.max_rows}", f"--serve-max-memory={limits.max_memory_mb}",
            f"--serve-timeout={math.ceil(limits.timeout_s)}",
        )  # fmt: skip
        self.limits = limits
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._process: asyncio.subprocess.Process | None = None
        self._start: asyncio.Task[asyncio.subprocess.Process] | None = None

    async def run(self, ready: Callable[[], None]) -> None:
        """Wait until the node stops, then end the SQL process."""
        ready()
        try:
            await asyncio.Event().wait()
        finally:
            await self.close()

    async def query(self, text: str) -> orjson.Fragment:
        """Return columns and rows as JSON text. Raises `RpcError` if the query fails or exceeds a limit."""
        return orjson.Fragment(await self._answered({"query": text}))

    async def tables(self) -> list[dict[str, Any]]:
        """Return the tables that clients can query, with their columns."""
        found: list[dict[str, Any]] = orjson.loads(await self._answered({"tables": True}))["tables"]
        return found

    async def _answered(self, request: dict[str, Any]) -> bytes:
        """Send a request to the SQL process and return the answer as JSON text. The text is not decoded, because
        decoding megabytes would block the event loop.
        """
        if self._waiting >= MAX_WAITING:
            raise RpcError(LIMIT_EXCEEDED_CODE, f"More than {MAX_WAITING} queries are waiting. Try again later.")
        self._waiting += 1
        try:
            async with self._turn:
                answer = await self._exchange(request)
        finally:
            self._waiting -= 1
        if answer.startswith(_ERROR):
            raise RpcError(SERVER_ERROR_CODE, orjson.loads(answer)["error"])
        return answer

    async def _exchange(self, request: dict[str, Any]) -> bytes:
        process = await self._started()
        is_answered = False
        try:
            answer = await asyncio.wait_for(_ask(process, request), self.limits.timeout_s)
            is_answered = True
        except TimeoutError:
            limit = f"{self.limits.timeout_s:g} seconds"
            raise RpcError(LIMIT_EXCEEDED_CODE, f"The query takes longer than {limit} (--rpc-sql-timeout).") from None
        except (OSError, EOFError, ValueError):
            raise RpcError(
                SERVER_ERROR_CODE,
                f"The query ended its process; it may need more than {self.limits.max_memory_mb} MiB of memory.",
            ) from None
        finally:
            if not is_answered:  # the client may have disconnected: the next query must not receive this answer
                await self.close()
        return answer

    async def _started(self) -> asyncio.subprocess.Process:
        """Return the SQL process, and start it if needed. If the request is cancelled, the start continues for later
        queries.
        """
        if self._process is not None and self._process.returncode is None:
            return self._process
        if self._start is None:
            self._start = asyncio.create_task(self._launch())
            self._start.add_done_callback(self._on_started)
        return await asyncio.shield(self._start)

    def _on_started(self, start: asyncio.Task[asyncio.subprocess.Process]) -> None:
        self._start = None
        if not start.cancelled() and start.exception() is None:
            self._process = start.result()

    async def _launch(self) -> asyncio.subprocess.Process:
        """Start the SQL process and wait for its first line of output, which reports that the process is ready."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_MAX_ANSWER_BYTES,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        line = b""
        try:
            line = await asyncio.wait_for(process.stdout.readline(), _START_TIMEOUT_S)
        except TimeoutError:
            pass
        finally:
            if line.strip() != b"ready":
                with suppress(ProcessLookupError):
                    process.kill()
        if line.strip() == b"ready":
            return process
        reason = (await process.stderr.read(_MAX_REASON_BYTES)).decode(errors="replace").strip()
        raise RpcError(SERVER_ERROR_CODE, f"SQL is not available. {reason or 'Its process did not start.'}")

    async def close(self) -> None:
        """End the SQL process."""
        if self._start is not None:
            self._start.cancel()
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _ask(process: asyncio.subprocess.Process, request: dict[str, Any]) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(orjson.dumps(request, option=orjson.OPT_APPEND_NEWLINE))
    await process.stdin.drain()
    line = await process.stdout.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return line.rstrip()

"""`ExecutionLog`: shows console output, failed calls and failed transactions of a development node.

The log traces executions again in the trace lane (worker threads), after the reply, so requests do not wait. Only
executions that have failed or have called the console are traced.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ophion.chain.block_builder import BuiltBlock
from ophion.chain.chain import Chain
from ophion.errors import ConfigError, OphionError
from ophion.native.exceptions import NativeError
from ophion.native.executor import console_reads
from ophion.native.tracing import TracedBlock, TraceKind, TraceStream, trace_call, trace_transaction
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address
from ophion.runtime.thread_pools import Lanes

if TYPE_CHECKING:
    from ophion.dev.execution_observer import ObservedCall
    from ophion.sdk.execution_log.call_report import CallReport
    from ophion.sdk.execution_log.contract_index import ContractIndex

log = logging.getLogger(__name__)

_MAX_WAITING = 64
_DEADLINE_S = 5.0
_MAX_TRACE_BYTES = 16 * 1024 * 1024
_MAX_LINES = 200
_WATCH_INTERVAL_S = 1.0

Trace = Callable[[], TraceStream]
CodeOf = Callable[[Address], bytes]


class ExecutionLog:
    """Observes a development node. As a service, it reads the artifacts again when they change."""

    name = "execution log"

    def __init__(
        self,
        chain: Chain,
        lanes: Lanes,
        artifacts: Path | None,
        is_coloured: bool,
        is_plain: bool,
        shows_console: bool = True,
        shows_all: bool = False,
    ) -> None:
        """Read the artifacts; raises `ConfigError` if they are unreadable. Call trees are printed unless `is_plain` is
        set. With `shows_all`, executions that succeed are shown too.
        """
        self._shows_console = shows_console
        self.shows_all = shows_all
        self._chain = chain
        self._lanes = lanes
        self._artifacts = artifacts
        self._is_coloured = is_coloured
        self._is_plain = is_plain
        self._index: ContractIndex | None = None
        self._waiting: deque[tuple[str, Trace, CodeOf]] = deque()
        self._working: asyncio.Task[None] | None = None
        self._seen = console_reads()
        self._skipped = 0
        if artifacts is not None:
            try:
                self._index = _loaded(artifacts)
            except OphionError as error:
                raise ConfigError(f"--artifacts: {error.message}") from error
            log.info("artifacts loaded folder=%s contracts=%d", artifacts, self._index.count)

    # --- ExecutionObserver ------------------------------------------------------------------------

    def reason(self, output: bytes) -> str | None:
        """Return a decoded custom error; None without artifacts."""
        return None if self._index is None else self._index.reason(output)

    def on_call(self, call: ObservedCall) -> None:
        """Trace a call that failed or wrote to the console."""
        if not log.isEnabledFor(logging.INFO):
            return

        def trace() -> TraceStream:
            kind = TraceKind.calls(with_log=True, with_pc=True)
            return trace_call(call.state, call.env, call.request, call.overrides, kind, _DEADLINE_S)

        self._put(call.method, trace, call.state.code)

    def on_block(self, header: HashedHeader, built: BuiltBlock) -> None:
        """Trace the failed transactions of a block; all transactions if one may have called the console, and with
        `shows_all`.
        """
        seen, self._seen = self._seen, console_reads()
        if not built.body.transaction_count or not log.isEnabledFor(logging.INFO):
            return
        statuses = built.execution.receipt_statuses()
        is_whole = self.shows_all or seen != self._seen
        chosen = [place for place, status in enumerate(statuses) if is_whole or not status[0]]
        for place in chosen:
            hash = built.body.hashes_and_senders()[0][place]
            self._put(f"transaction 0x{hash.hex()}", self._transaction(header, built, place), built.state.code)

    def _transaction(self, header: HashedHeader, built: BuiltBlock, place: int) -> Trace:
        def trace() -> TraceStream:
            parent = self._chain.header(header.parent_hash)
            assert parent is not None, "the parent of a block is stored"
            block = TracedBlock(
                parent=self._chain.state(parent.header), env=built.env, body=built.body, hash=header.hash, rewards=[]
            )
            kind = TraceKind.calls(with_log=True, with_pc=True)
            return trace_transaction(block, place, kind, _DEADLINE_S)

        return trace

    # --- requests of the web interface, in the trace lane ------------------------------------------

    def call_tree(self, frame: Mapping[str, Any], code_of: CodeOf) -> dict[str, Any]:
        """Return the call tree of a traced transaction."""
        return self._report(frame, code_of).members()

    def source_steps(
        self, rows: Sequence[Mapping[str, Any]], frame: Mapping[str, Any], code_of: CodeOf
    ) -> dict[str, Any]:
        """Return the source lines that a traced transaction visits."""
        from ophion.sdk.execution_log.source_steps import source_steps

        return source_steps(rows, frame, self._report(frame, code_of).contract_of)

    # --- tracing ----------------------------------------------------------------------------------

    def _put(self, title: str, trace: Trace, code_of: CodeOf) -> None:
        if len(self._waiting) >= _MAX_WAITING:
            self._skipped += 1
            return
        self._waiting.append((title, trace, code_of))
        if self._working is None:
            self._working = asyncio.get_running_loop().create_task(self._work(), name=self.name)

    async def _work(self) -> None:
        try:
            while self._waiting:
                title, trace, code_of = self._waiting.popleft()
                try:
                    report = await self._lanes.trace.run(lambda: self._traced(trace, code_of))  # noqa: B023
                except (OphionError, NativeError, ValueError) as error:
                    log.debug("execution not shown title=%s reason=%s", title, error)
                    continue
                self._show(title, report)
            if self._skipped:
                log.info("executions not shown, too many at once count=%d", self._skipped)
                self._skipped = 0
        finally:
            self._working = None

    def _traced(self, trace: Trace, code_of: CodeOf) -> CallReport:
        text = bytearray()
        stream = trace()
        while (part := stream.next()) is not None:
            text += part
            if len(text) > _MAX_TRACE_BYTES:
                raise ValueError("the trace is too long")
        return self._report(orjson.loads(text), code_of)

    def _report(self, frame: Mapping[str, Any], code_of: CodeOf) -> CallReport:
        # lazy import: only failed calls and calls of the console need this module
        from ophion.sdk.execution_log.call_report import CallReport
        from ophion.sdk.execution_log.contract_index import ContractIndex

        return CallReport(frame, self._index or ContractIndex(), code_of)

    def _show(self, title: str, report: CallReport) -> None:
        for line in report.console if self._shows_console else ():
            log.info("console.log: %s", line)
        if report.has_failed:
            log.info("execution failed in=%s reason=%s", title.replace(" ", ":"), report.reason)
        elif self.shows_all:
            log.info("execution traced in=%s", title.replace(" ", ":"))
        else:
            return
        if self._is_plain:
            return
        lines = report.lines(self._is_coloured)
        shown = lines[:_MAX_LINES]
        if len(lines) > len(shown):
            shown.append(f"… {len(lines) - len(shown)} more lines")
        sys.stdout.write("".join(f"    {line}\n" for line in shown))
        sys.stdout.flush()

    # --- Service ----------------------------------------------------------------------------------

    async def run(self, ready: Callable[[], None]) -> None:
        """Read the artifacts again when a compiler has changed them."""
        ready()
        if self._artifacts is None:
            await asyncio.Event().wait()
            return
        folder = self._artifacts
        seen = await self._lanes.files.run(lambda: _newest(folder))
        while True:
            await asyncio.sleep(_WATCH_INTERVAL_S)
            changed = await self._lanes.files.run(lambda: _newest(folder))
            if changed == seen:
                continue
            seen = changed
            try:
                self._index = await self._lanes.files.run(lambda: _loaded(folder))
            except OphionError as error:
                log.warning("artifacts not reloaded, the previous ones stay reason=%s", error.message)
            else:
                log.info("artifacts reloaded folder=%s contracts=%d", folder, self._index.count)


def _loaded(folder: Path) -> ContractIndex:
    # lazy import: a node without artifacts starts faster
    from ophion.sdk.execution_log.contract_index import load_index

    return load_index(folder)


def _newest(folder: Path) -> tuple[int, int]:
    """Return the number of JSON files in a folder, and the time of the newest change."""
    times = []
    for path in folder.rglob("*.json"):
        try:
            times.append(path.stat().st_mtime_ns)
        except OSError:
            continue  # the compiler has removed the file in the meantime
    return len(times), max(times, default=0)

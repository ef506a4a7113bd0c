"""Adds the log of executions to a development node."""

from __future__ import annotations

import sys

from ophion.node.build import NodeCore
from ophion.node.config import NodeConfig
from ophion.runtime.logs import LogFormat
from ophion.runtime.thread_pools import Lanes
from ophion.sdk.execution_log.execution_log import ExecutionLog


def attach_execution_log(config: NodeConfig, core: NodeCore, lanes: Lanes) -> ExecutionLog | None:
    """Attach an execution log to a development node; return None for any other node. Call trees go to standard output,
    unless the log is JSON or goes to a file.
    """
    if core.dev is None:
        return None
    logs = config.logs
    is_coloured = sys.stdout.isatty() if logs.is_coloured is None else logs.is_coloured
    is_plain = logs.format is LogFormat.JSON or logs.file is not None or logs.config_file is not None
    dev = config.dev
    executions = ExecutionLog(
        core.chain, lanes, dev.artifacts, is_coloured, is_plain, dev.shows_console, dev.prints_traces
    )
    core.dev.observe(executions)
    return executions

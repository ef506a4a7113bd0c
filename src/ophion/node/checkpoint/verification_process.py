"""Verifies a checkpoint in a process of its own.

LMDB maps the file and trusts its pages. Reading a damaged file can kill the process with a signal. So a child process
reads the file first, and a signal becomes an error message.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from ophion.chainspec.genesis import Genesis
from ophion.errors import CheckpointError
from ophion.node.checkpoint.header_chain import OnProgress
from ophion.node.checkpoint.verification import VerifiedCheckpoint, verify
from ophion.primitives.types import Hash32
from ophion.runtime.clock import SystemClock

_KILL_AFTER_S = 5.0


def verify_in_child(
    folder: Path, genesis: Genesis, trusted_hash: Hash32 | None, on_progress: OnProgress
) -> VerifiedCheckpoint:
    """Run `verify` in a child process. Raises `CheckpointError` if the verification fails or the child crashes."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_run, args=(theirs, folder, genesis, trusted_hash), name="checkpoint", daemon=True)
    child.start()
    theirs.close()
    try:
        while True:
            try:
                kind, *values = ours.recv()
            except (EOFError, OSError):
                raise CheckpointError(_crash(child)) from None
            if kind == "progress":
                on_progress(*values)
            elif kind == "verified":
                return VerifiedCheckpoint(*values)
            else:
                raise CheckpointError(*values)
    finally:
        ours.close()  # closing this end of the pipe makes the child process end itself
        child.join(_KILL_AFTER_S)
        if child.is_alive():
            child.kill()
            child.join()


def _crash(child: multiprocessing.process.BaseProcess) -> str:
    child.join(_KILL_AFTER_S)
    code = child.exitcode
    if code is not None and code < 0:
        return f"the database file is damaged: reading it ended with {signal.Signals(-code).name}"
    return f"the process that verifies it ended with exit code {code}"


def _run(pipe: Connection, folder: Path, genesis: Genesis, trusted_hash: Hash32 | None) -> None:
    # ignore Ctrl-C: the parent process gets the same signal and ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # the parent process reports a Rust panic
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()

    def report(step: str, done: int, total: int) -> None:
        pipe.send(("progress", step, done, total))

    try:
        verified = verify(folder, genesis, trusted_hash, lambda: int(SystemClock().now()), report)
    except CheckpointError as error:
        pipe.send(("refused", str(error)))
    except BaseException as error:  # noqa: BLE001  # malformed rows may raise anything
        pipe.send(("refused", f"the database file is damaged: {type(error).__name__}: {error}"))
    else:
        pipe.send(("verified", verified.number, verified.hash))


def _end_with_parent(pipe: Connection) -> None:
    """End this process when the parent has ended, so that this process does not continue to write."""
    try:
        pipe.poll(None)
        pipe.recv()
    except (EOFError, OSError):
        os._exit(1)

"""One process of a network, which ends with its supervisor."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ophion.runtime.options.sources import PREFIXES

_PR_SET_PDEATHSIG: Final = 1


class NetworkProcess:
    """One process of a network. It can be restarted after its end."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._here = Path.cwd()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process. Its output goes to the log."""
        # remove environment variables that set options, so that only the command line sets options
        environment = {name: text for name, text in os.environ.items() if not name.startswith(PREFIXES)}
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self._here,  # start in the supervisor's first directory, because import paths may be relative to it
                start_new_session=True,  # only the supervisor gets Ctrl-C, because it stops its children in order
                preexec_fn=_ends_with(os.getpid()),
            )
        finally:
            os.close(descriptor)

    @property
    def pid(self) -> int | None:
        """The process id, or None while the process is not running."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def ending(self) -> str | None:
        """How the process ended: its exit code or the signal, as text. None before the start and while the process is
        running.
        """
        code = None if self._process is None else self._process.poll()
        if code is None:
            return None
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, if the process is running."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


def _ends_with(parent: int) -> Callable[[], None] | None:
    """Return a function that asks the kernel to end the new process together with `parent`, even if `parent` is killed.

    Returns None on systems other than Linux, where the nodes of a killed supervisor keep running.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the parent process ended before this call of prctl

    return tie

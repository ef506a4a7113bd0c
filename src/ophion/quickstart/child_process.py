"""One process of a network, which does not outlive whoever started it."""

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


class Child:
    """A process that can be started again after it has ended."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._here = Path.cwd()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; what it says goes to the log."""
        # what is set for this shell must not change what the command lines say
        environment = {name: text for name, text in os.environ.items() if not name.startswith(PREFIXES)}
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self._here,  # where this package was found: its path may be relative
                start_new_session=True,  # Ctrl-C is for the supervisor, which ends its children in order
                preexec_fn=_tied_to(os.getpid()),
            )
        finally:
            os.close(descriptor)

    @property
    def pid(self) -> int | None:
        """None when it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    @property
    def ending(self) -> str | None:
        """How it ended; None while it runs, and before it was started."""
        code = None if self._process is None else self._process.poll()
        if code is None:
            return None
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    def signal(self, number: signal.Signals) -> None:
        """Tell it something, if it is there."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


def _tied_to(parent: int) -> Callable[[], None] | None:
    """What a new process does first: ask the system to end it with its parent.

    The supervisor may be killed without a word, and nothing it could do itself would help then. Other systems than
    Linux have no such thing; there a killed supervisor leaves its nodes to whoever killed it.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # it went while this was being said

    return tie

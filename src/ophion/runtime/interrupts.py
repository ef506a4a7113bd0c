"""Makes Ctrl-C end the process at once and without a message, before a command has begun.

Python raises `KeyboardInterrupt` at any point of the program. While modules load, this exception prints a traceback or
gets lost. There is nothing to clean up yet, so the system's default action is used instead.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def end_at_once() -> None:
    """Let Ctrl-C end the process. A process that ignores Ctrl-C, such as a background job of a shell, still
    ignores it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """Let Ctrl-C raise an exception again, because from now on there may be something to clean up."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def stop_signals() -> list[signal.Signals]:
    """Return the signals that stop the process. SIGHUP (closed terminal) is included, unless the process was started
    with nohup.
    """
    outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM] + ([] if outlives_terminal else [signal.SIGHUP])


@contextmanager
def held_back() -> Iterator[None]:
    """Block stop signals while modules load, because an exception raised meanwhile would get lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

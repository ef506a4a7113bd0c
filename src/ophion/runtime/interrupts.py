"""Effect of Ctrl-C before a command has begun: it ends the process at once, without a message.

Python raises `KeyboardInterrupt` wherever the program is. While modules load, that prints a traceback or is swallowed
and the command goes on. Nothing needs cleanup yet, so the default action of the system applies.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def end_at_once() -> None:
    """Let Ctrl-C end the process; where it is ignored, as in the background of a shell, it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """Let Ctrl-C raise an exception again: from now on there may be something to clean up."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def stop_signals() -> list[signal.Signals]:
    """Signals that stop the process: also a closed terminal, unless the process was started with nohup."""
    outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM] + ([] if outlives_terminal else [signal.SIGHUP])


@contextmanager
def held_back() -> Iterator[None]:
    """Block stop signals while modules load, where exceptions get lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

"""What Ctrl-C does before a command has begun: it ends the process, at once and without a word.

Python turns it into an exception, which appears wherever the program happens to be. While modules are loaded that is a
traceback of our insides, or a place where exceptions are ignored: then the command went on as if nobody had pressed
anything. There is nothing to undo yet, so the system may do what it does with any program.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def end_at_once() -> None:
    """From now on Ctrl-C ends the process; where it is ignored, as in the background of a shell, it stays ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """From now on there may be something to undo: Ctrl-C is an exception again."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def stop_signals() -> list[signal.Signals]:
    """What asks a process to stop: also the end of its terminal, unless it was started to outlive that (nohup)."""
    outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM] + ([] if outlives_terminal else [signal.SIGHUP])


@contextmanager
def held_back() -> Iterator[None]:
    """Whoever asks the process to stop waits until this is over; for loading modules, where exceptions get lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

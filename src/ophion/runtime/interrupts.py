"""Signals that stop the process: before a command has begun, and for a command that waits for them.

Before a command has begun, Ctrl-C ends the process at once and without a message.

Python raises `KeyboardInterrupt` at any point of the program. While modules load, this exception prints a traceback or
gets lost. There is nothing to clean up yet, so the system's default action is used instead.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_INIT: Final = 1


def end_at_once() -> None:
    """Let Ctrl-C end the process. A process that ignores Ctrl-C, such as a background job of a shell, still
    ignores it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_again() -> None:
    """Let Ctrl-C raise an exception again, because from now on there may be something to clean up."""
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, _end):
        signal.signal(signal.SIGINT, signal.default_int_handler)


def stop_signals() -> list[signal.Signals]:
    """Return the signals that stop the process. SIGHUP (closed terminal) is included, unless the process was started
    with nohup.
    """
    outlives_terminal = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM] + ([] if outlives_terminal else [signal.SIGHUP])


def end_by_inherited_signals() -> None:
    """Let inherited stop signals end the process.

    Process 1 of a container needs this, because the kernel does not apply the default action of a signal to process 1.
    The entry point of a container may also have blocked the signals, so that no signal gets lost before Python runs.
    """
    signals = set(stop_signals())
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ()) & signals
    if not blocked and os.getpid() != _INIT:
        return
    for number in signals:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)


def _end(number: int, frame: object) -> None:
    os._exit(128 + number)


@contextmanager
def held_back() -> Iterator[None]:
    """Block stop signals while modules load, because an exception raised meanwhile would get lost."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class StopSignals:
    """Notes stop signals, for a thread that checks for signals between its steps.

    The handler writes to a pipe. A handler that sets a `threading.Event` may hang, because a handler runs in the
    interrupted thread, and this thread may hold the lock of the event.
    """

    def __init__(self, *numbers: signal.Signals) -> None:
        """Handle these signals from now on."""
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        for number in numbers:
            signal.signal(number, self._note)

    def _note(self, number: int, frame: object) -> None:
        # if the pipe is full, it has recorded enough signals
        with suppress(BlockingIOError):
            os.write(self._writer, b"\0")

    def wait(self, seconds: float) -> bool:
        """Wait for a signal. Returns whether a signal has arrived since this object was made."""
        return bool(select.select([self._reader], [], [], seconds)[0])

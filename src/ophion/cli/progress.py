"""Progress of long commands: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from typing import TextIO

from ophion.runtime.clock import Clock, SystemClock

_REDRAW_S = 0.1
_LINE_S = 10.0


class Progress:
    """Progress towards a total. Standard error shows the progress, so that the result of a command can be piped.

    A terminal shows one line that is redrawn. Other outputs (a log file, a CI run) get a line every `line_s` seconds.
    """

    def __init__(
        self,
        what: str,
        total: int,
        stream: TextIO | None = None,
        clock: Clock | None = None,
        line_s: float = _LINE_S,
    ) -> None:
        self._what = what
        self._total = total
        self._stream = sys.stderr if stream is None else stream
        self._clock = SystemClock() if clock is None else clock
        self._is_terminal = self._stream.isatty()
        self._started = self._clock.monotonic()
        self._shown = self._started
        self._is_drawn = False
        self._line_s = line_s

    def update(self, done: int, note: str = "") -> None:
        """Set the finished amount. The bar shows `note` after the numbers."""
        now = self._clock.monotonic()
        if now - self._shown < (_REDRAW_S if self._is_terminal else self._line_s):
            return
        self._shown = now
        percent = 100 * min(done, self._total) // self._total if self._total else 100
        text = f"{self._what} {done}/{self._total} ({percent} %){f' {note}' if note else ''}"
        if self._is_terminal:
            self._stream.write(f"\r{self._bar(done, text)}\x1b[K")
            self._is_drawn = True
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        self.clear()
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Remove the bar before other output."""
        if self._is_drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._is_drawn = False

    def elapsed(self) -> float:
        """Seconds since the start of the command."""
        return self._clock.monotonic() - self._started

    def _bar(self, done: int, text: str) -> str:
        import shutil  # lazy import: commands without a progress bar start faster

        columns = shutil.get_terminal_size((80, 24)).columns - len(text) - 4
        width = min(columns, 40)
        if width < 5:
            return text
        full = width * min(done, self._total) // self._total if self._total else width
        return f"[{'#' * full}{'.' * (width - full)}] {text}"

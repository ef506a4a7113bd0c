"""Tests progress bars and progress lines."""

from __future__ import annotations

import io

from ophion.cli.progress import Progress
from ophion.runtime.clock import ManualClock


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_that_is_drawn_over() -> None:
    stream, clock = _Terminal(), ManualClock()
    progress = Progress("Blocks", 10, stream, clock)
    progress.update(1)
    assert stream.getvalue() == ""
    clock.elapsed = 1.0
    progress.update(5, "12 blocks/s")
    assert stream.getvalue().startswith("\r[####################....................] Blocks 5/10 (50 %) 12 blocks/s")
    progress.line("Something to say")
    assert stream.getvalue().endswith("\r\x1b[KSomething to say\n")


def test_elsewhere_a_line_is_written_every_ten_seconds() -> None:
    stream, clock = io.StringIO(), ManualClock()
    progress = Progress("Blocks", 10, stream, clock)
    for second in range(25):
        clock.elapsed = float(second)
        progress.update(second % 11)
    assert stream.getvalue() == "Blocks 10/10 (100 %)\nBlocks 9/10 (90 %)\n"
    progress.clear()
    assert progress.elapsed() == 24.0


def test_nothing_to_do_is_done_at_once() -> None:
    stream, clock = _Terminal(), ManualClock()
    progress = Progress("Blocks", 0, stream, clock)
    clock.elapsed = 1.0
    progress.update(0)
    assert "(100 %)" in stream.getvalue()

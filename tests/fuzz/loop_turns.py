"""A node whose event loop notes how long its turns take: python -m tests.fuzz.loop_turns FILE [arguments of ophion]

What a turn takes is the time for which the thread of the loop had the processor: a turn that the system has interrupted
is none of ours. The loop is asked for a call every half millisecond, which comes when a turn is over; what the thread
has used since the call before is one turn, or some short ones. Whenever one was longer than all before, a line is
written to FILE: seconds, and what the thread was doing, as another thread saw it a few times meanwhile.

Nothing of the node is changed for it.
"""

from __future__ import annotations

import json
import runpy
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import uvloop

EVERY_S = 0.0005
LOOK_S = 0.005
LONG_S = 0.02
"""Turns of less are not looked into."""
DEPTH = 6


class Turns:
    """The longest turn so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._clock = time.pthread_getcpuclockid(threading.get_ident())
        self._thread = threading.get_ident()
        self._began = self._used()
        self._longest = LONG_S / 4
        self._seen: Counter[str] = Counter()
        self._loop: Any = None

    def watch(self, loop: Any) -> None:
        self._loop = loop
        loop.call_soon(self._begin)
        threading.Thread(target=self._look, name="turns", daemon=True).start()

    def _used(self) -> float:
        return time.clock_gettime(self._clock)

    def _begin(self) -> None:
        self._began = self._used()
        self._loop.call_later(EVERY_S, self._turned)

    def _turned(self) -> None:
        now = self._used()
        took = now - self._began
        if took > self._longest:
            self._longest = took
            self._tell(took, self._seen.most_common(5))
        if self._seen:
            self._seen = Counter()
        self._loop.call_later(EVERY_S, self._turned)
        self._began = self._used()  # what this cost is not the node's

    def _tell(self, took: float, seen: list[tuple[str, int]]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps({"seconds": took, "doing": [f"{count} x {where}" for where, count in seen]}) + "\n")

    def _look(self) -> None:
        while True:
            time.sleep(LOOK_S)
            if self._used() - self._began > LONG_S:
                frame = sys._current_frames().get(self._thread)
                self._seen[place_of(frame)] += 1


def place_of(frame: FrameType | None) -> str:
    """The innermost calls."""
    calls = []
    while frame is not None and len(calls) < DEPTH:
        name = frame.f_code.co_filename.rpartition("/ophion/")[2]
        calls.append(f"{name}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(calls)


def longest(path: Path) -> tuple[float, list[str]]:
    """The longest turn that was noted, and what ran in it."""
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines:
        return 0.0, []
    found = json.loads(lines[-1])
    return found["seconds"], found["doing"]


def main() -> None:
    path = Path(sys.argv[1])
    make = uvloop.new_event_loop

    def watched() -> Any:
        loop = make()
        loop.call_soon(lambda: Turns(path).watch(loop))
        return loop

    uvloop.new_event_loop = watched
    sys.argv[1:] = sys.argv[2:]
    runpy.run_module("ophion", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

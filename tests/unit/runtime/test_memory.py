"""Freed memory is returned to the system."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from ophion.native.memory import give_back
from ophion.runtime.memory import MemoryTrimmer, collect, resident_bytes

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process occupies")


@linux_only
def test_what_was_freed_is_given_back() -> None:
    small = [bytes(60_000) for _ in range(4000)]
    survivors = small[::50]
    full = resident_bytes()
    del small
    give_back()
    assert resident_bytes() < full - 100_000_000
    assert len(survivors) == 80


_THREADS = """
import threading
from ophion.native.memory import give_back, keep_freed, note_heap
from ophion.runtime.memory import resident_bytes

keep_freed(32 << 20)
stay, freed = threading.Event(), threading.Barrier(7)

def work():
    note_heap()
    held = [bytes(200_000) for _ in range(100)]
    del held
    freed.wait()
    stay.wait()

before = resident_bytes()
threads = [threading.Thread(target=work) for _ in range(6)]
for one in threads:
    one.start()
freed.wait()
give_back()
print(resident_bytes() - before)
stay.set()
"""


@linux_only
def test_what_threads_have_freed_is_given_back_while_they_sleep() -> None:
    done = subprocess.run([sys.executable, "-c", _THREADS], capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) < 6_000_000


_FREE_LISTS = """
from ophion.runtime.memory import collect, resident_bytes

before = resident_bytes()
held = [(float(number), number + 0.5, None) for number in range(600_000)]
for position in range(0, 600_000, 300):
    held[position] = None  # the interpreter keeps these for the next who want a tuple: one in every page
del held
between = resident_bytes()
collect()
print(before, between, resident_bytes())
"""


@linux_only
def test_free_objects_of_the_interpreter_do_not_keep_whole_megabytes() -> None:
    done = subprocess.run([sys.executable, "-c", _FREE_LISTS], capture_output=True, text=True, check=True, timeout=60)
    before, between, after = map(int, done.stdout.split())
    assert between - before > 20_000_000
    assert after - before < 10_000_000


@linux_only
def test_a_process_that_has_grown_becomes_small_again() -> None:
    class Knot:
        """An object that only a garbage collection frees."""

        def __init__(self) -> None:
            self.itself = self
            self.load = bytes(60_000)

    async def main() -> None:
        trimming = asyncio.create_task(MemoryTrimmer(0.01).run(lambda: None))
        await asyncio.sleep(0.02)
        knots = [Knot() for _ in range(2000)]
        full = resident_bytes()
        del knots
        for _ in range(1000):
            await asyncio.sleep(0.01)
            if resident_bytes() < full - 80_000_000:
                break
        assert resident_bytes() < full - 80_000_000
        trimming.cancel()

    asyncio.run(main())


def test_giving_back_nothing_does_no_harm() -> None:
    collect()
    give_back()
    give_back()
    assert resident_bytes() >= 0

"""Tests metrics of the current process."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from ophion.metrics import process
from ophion.runtime.clock import ManualClock
from ophion.runtime.metric_category import Category
from ophion.runtime.metrics_registry import MetricsRegistry


def test_the_process_is_measured() -> None:
    registry = MetricsRegistry()
    end = process.declare_process(registry, ManualClock())
    gc.collect()
    lines = registry.text(frozenset(Category)).splitlines()
    shown = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}
    end()
    assert shown["process_cpu_seconds_total"] > 0
    assert 1_690_000_000 < shown["process_start_time_seconds"] <= 1_700_000_000
    assert shown["process_resident_memory_bytes"] > 2**20
    assert shown['jvm_memory_bytes_used{area="heap"}'] > 2**20
    assert shown['jvm_memory_bytes_used{area="nonheap"}'] == 0
    assert shown['jvm_gc_collection_seconds_count{gc="python"}'] >= 1
    assert shown['jvm_gc_collection_seconds_sum{gc="python"}'] > 0
    assert shown["process_max_fds"] > 0


LATE = """
import time
began = time.time()
time.sleep(0.5)
from ophion.metrics.process import declare_process
from ophion.runtime.clock import SystemClock
from ophion.runtime.metrics_registry import MetricsRegistry
registry = MetricsRegistry()
declare_process(registry, SystemClock())
print(registry.nested()["process"]["start_time_seconds"] - began)
"""


def test_the_start_of_the_process_does_not_depend_on_who_asks_when() -> None:
    """The metric shows the start of the process. If metrics are off, `debug_metrics` declares this metric at its first
    call, possibly days later.
    """
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True, timeout=60)
    # the operating system counts processor time in hundredths of a second
    assert float(done.stdout) < 0.02


def test_nothing_is_left_behind() -> None:
    before = len(gc.callbacks)
    process.declare_process(MetricsRegistry(), ManualClock())()
    assert len(gc.callbacks) == before


def test_a_system_without_proc_has_fewer_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_STATM", Path("/nowhere"))
    monkeypatch.setattr(process, "_FILES", Path("/nowhere"))
    assert process.resident_bytes() > 2**20
    assert process.virtual_bytes() == 0
    monkeypatch.setattr(process, "_STAT", Path("/nowhere"))
    assert process.open_files() == 0
    assert 0 < process.age_s() < 1e6

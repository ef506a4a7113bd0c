"""Injects disk errors at a chosen moment: builds `faults.c` and preloads it into the command."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fuzz.small_chain import import_small

SOURCE = Path(__file__).with_name("faults.c")


@dataclass(frozen=True, slots=True)
class Faults:
    """The built fault injection library."""

    library: Path

    @classmethod
    def built(cls, folder: Path) -> Faults:
        """Compile the library. Skips the test if the compilation fails."""
        compiler = shutil.which("cc")
        if not sys.platform.startswith("linux") or compiler is None:
            pytest.skip("misbehaving disks need Linux and a C compiler")
        library = folder / "faults.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
        return cls(library)

    def environment(self, kind: str, data: Path, moment: int, count: Path | None = None) -> dict[str, str]:
        """Return an environment in which the `moment`-th file change under `data` fails with the fault `kind`."""
        found = {
            "LD_PRELOAD": str(self.library),
            "FAULT": kind,
            "FAULT_PATH": str(data),
            "FAULT_AT": str(moment),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return found if count is None else {**found, "FAULT_COUNT": str(count)}

    def log(self, data: Path, log: Path) -> list[tuple[str, int, str]]:
        """Return (call, position, file) of every file change while the small chain is imported."""
        env = {**self.environment("none", data, 0), "FAULT_LOG": str(log)}
        import_small(data, env=env).succeeded()
        lines = [line.split(" ", 2) for line in log.read_text().splitlines()]
        return [(call, int(place), Path(file).name) for call, place, file in lines]

    def moments(self, folder: Path, sampled: int) -> list[int]:
        """Return the file changes of an import at which to inject a fault: the last changes and a sample, or all
        changes with FAULTS=all.
        """
        count = folder / "count"
        data = folder / "counted"
        import_small(data, env=self.environment("none", data, 0, count)).succeeded()
        total = int(count.read_text())
        assert total > 20
        everything = range(1, total + 1)
        if os.environ.get("FAULTS") == "all":
            return list(everything)
        source = random.Random(sampled)
        return sorted({*everything[-4:], *source.sample(everything, sampled - 4)})

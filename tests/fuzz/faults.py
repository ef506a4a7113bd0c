"""Disks that misbehave at a chosen moment: `faults.c`, built and preloaded into the command."""

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
    """The built library."""

    library: Path

    @classmethod
    def built(cls, folder: Path) -> Faults:
        """Compile it, or skip the test where that cannot be done."""
        compiler = shutil.which("cc")
        if not sys.platform.startswith("linux") or compiler is None:
            pytest.skip("misbehaving disks need Linux and a C compiler")
        library = folder / "faults.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
        return cls(library)

    def environment(self, kind: str, data: Path, moment: int, count: Path | None = None) -> dict[str, str]:
        """For a command whose call number `moment` that changes a file under `data` meets this fault."""
        found = {
            "LD_PRELOAD": str(self.library),
            "FAULT": kind,
            "FAULT_PATH": str(data),
            "FAULT_AT": str(moment),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return found if count is None else {**found, "FAULT_COUNT": str(count)}

    def log(self, data: Path, log: Path) -> list[tuple[str, int, str]]:
        """(call, place, file) of every change of a file while the small chain is imported."""
        env = {**self.environment("none", data, 0), "FAULT_LOG": str(log)}
        import_small(data, env=env).succeeded()
        lines = [line.split(" ", 2) for line in log.read_text().splitlines()]
        return [(call, int(place), Path(file).name) for call, place, file in lines]

    def moments(self, folder: Path, sampled: int) -> list[int]:
        """Numbers of calls of an import of the small chain: the last ones and a sample, or all with FAULTS=all."""
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

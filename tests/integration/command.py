"""Runs the real command as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

OPHION = [sys.executable, "-m", "ophion"]


@dataclass(frozen=True, slots=True)
class Finished:
    """Result of a finished command."""

    code: int
    out: str
    err: str

    def succeeded(self) -> Finished:
        """Check that the command succeeded, and return this result."""
        assert self.code == 0, f"exit code {self.code}\n{self.out}\n{self.err}"
        return self

    def failed(self, *messages: str) -> Finished:
        """Check that the command failed with these messages and without a traceback, and return this result."""
        assert self.code == 1, f"exit code {self.code}\n{self.out}\n{self.err}"
        assert "Traceback" not in self.err
        assert "Internal error" not in self.err
        for message in messages:
            assert message in self.err
        return self


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return environment variables that run the code of this checkout, without variables that set options."""
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPHION_", "PANTHEON_", "BESU_"))
    }
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), variables.get("PYTHONPATH", ""))))
    return {**variables, "PYTHONPATH": path, **(extra or {})}


def ophion(
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    text: str = "",
    prefix: Sequence[str] = (),
    timeout_s: float = 120,
) -> Finished:
    """Run `ophion` and wait for it. `prefix` precedes the command."""
    done = subprocess.run(
        [*prefix, *OPHION, *map(str, arguments)],
        cwd=cwd,
        env=environment(env),
        input=text.encode(),
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    return Finished(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

"""If a program is missing, the set-up prints one line that names what to install."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

SET_UP = ROOT / "scripts" / "set-up"


def machine(folder: Path, **programs: str) -> Path:
    """Make a directory with all programs of a simulated machine: the shell's helpers and these one-line scripts."""
    folder.mkdir()
    for name in ("sh", "awk"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    for name, line in programs.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    return folder


def set_up(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SET_UP), *arguments], env={"PATH": str(path)}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("programs", "message"),
    [
        ({}, "Rust is needed: install the stable toolchain with rustup"),
        ({"cargo": "echo cargo 1.80.0"}, "Rust 1.94.1 or newer is needed, this is cargo 1.80.0: run rustup update"),
        ({"cargo": "echo 'cargo 1.94.1 (abc 2026-01-01)'"}, "A C compiler is needed: install gcc or clang"),
        ({"cargo": "echo cargo 2.0.0-nightly"}, "A C compiler is needed: install gcc or clang"),
    ],
)
def test_a_missing_compiler_is_one_line(tmp_path: Path, programs: dict[str, str], message: str) -> None:
    done = set_up(machine(tmp_path / "bin", **programs), "rust", str(tmp_path / "venv"))
    assert done.returncode == 1
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("programs", "message"),
    [
        ({}, "Python 3.11 or newer is needed: install it"),
        ({"python3": "exit 1"}, "Python 3.11 or newer is needed: install it"),
        ({"python3": 'case "$2" in *ensurepip*) exit 1;; esac'}, "Python has no venv module: install the package"),
    ],
)
def test_a_missing_python_is_one_line(tmp_path: Path, programs: dict[str, str], message: str) -> None:
    done = set_up(machine(tmp_path / "bin", **programs), "tools", str(tmp_path / "venv"))
    assert done.returncode == 1
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_a_complete_machine_is_silent(tmp_path: Path) -> None:
    complete = machine(tmp_path / "bin", cargo="echo cargo 1.95.0", cc="exit 0")
    done = set_up(complete, "rust", str(tmp_path / "venv"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

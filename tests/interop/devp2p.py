"""Finds the conformance tool of go-ethereum and the data of its suites."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SUITE_DATA = "github.com/ethereum/go-ethereum@v{version}/cmd/devp2p/internal/ethtest/testdata"
_LIMIT_S = 540


def tool(variable: str, version: str) -> Path:
    """Return the program that the variable names. Skips the test if the variable is not set."""
    named = os.environ.get(variable)
    if not named:
        pytest.skip(f"{variable} does not name go-ethereum's devp2p tool ({version})")
    found = shutil.which(named)
    assert found, f"{variable} names {named}, which is no program"
    return Path(found)


def suite_data(version: str, target: Path) -> Path:
    """Return a copy of a suite's chain. `go mod download` of the suite's go-ethereum version puts the chain into Go's
    module cache.
    """
    cache = os.environ.get("GOMODCACHE") or _go_module_cache()
    source = Path(cache, SUITE_DATA.format(version=version)) if cache else None
    if source is None or not source.is_dir():
        pytest.skip(f"the module cache of Go does not hold go-ethereum {version}, whose test chain is needed")
    target.mkdir()
    for file in source.iterdir():
        shutil.copyfile(file, target / file.name)  # make a writable copy, because the cache is read-only
    return target


def _go_module_cache() -> str:
    go = shutil.which("go")
    if go is None:
        return str(Path.home() / "go" / "pkg" / "mod")
    return subprocess.run([go, "env", "GOMODCACHE"], capture_output=True, text=True, check=True).stdout.strip()


def run(program: Path, *arguments: str | Path) -> str:
    """Run the tool and return its output. The tool must succeed."""
    ran = subprocess.run(
        [program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_LIMIT_S
    )
    assert ran.returncode == 0, ran.stdout[-8000:]
    return ran.stdout


def passed(output: str) -> set[str]:
    """Return the names of passed tests in TAP output. Raises an error if a test failed."""
    bad = re.findall(r"^not ok \d+ (.*)", output, re.MULTILINE)
    assert not bad, f"{bad}\n{output[-8000:]}"
    return {name.strip() for name in re.findall(r"^ok \d+ (.*)", output, re.MULTILINE)}

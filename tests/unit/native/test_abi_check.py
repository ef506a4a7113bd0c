"""The start checks that the compiled extension matches the Python sources."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ophion
from ophion._native import keeps
from ophion.native.abi_check import check_contract

PACKAGE = Path(ophion.__file__).parent
EXTENSION = next(PACKAGE.glob("_native*.so"))


def start(package: Path) -> subprocess.CompletedProcess[str]:
    """Run `ophion --version` of a copy of the package."""
    return subprocess.run(
        [sys.executable, "-c", "import sys; from ophion.__main__ import main; sys.exit(main())", "--version"],
        env={"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Copy the Python sources without the extension."""
    package = tmp_path / "ophion"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("*.so", "files"))
    return package


def test_the_halves_of_this_tree_belong_together() -> None:
    check_contract()


def test_a_copy_of_both_halves_starts(copied: Path) -> None:
    (copied / EXTENSION.name).symlink_to(EXTENSION)
    done = start(copied)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("ophion/v")


def test_an_extension_that_was_built_for_another_contract_is_refused_in_one_sentence(copied: Path) -> None:
    (copied / EXTENSION.name).symlink_to(EXTENSION)
    contract = copied / "_native.pyi"
    contract.write_text(contract.read_text().replace("def collect(self, max: int, /)", "def collect(self)"))
    done = start(copied)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"The compiled half of Ophion, {copied / EXTENSION.name}, was built for other Python sources than those beside"
        " it: run `make build`, or install Ophion again.\n"
    )


def test_what_is_said_about_the_declarations_may_change_without_a_build() -> None:
    contract = (PACKAGE / "_native.pyi").read_text()
    said = contract.replace('"""Base of all', '"""The base\n    of all').replace("# --- crypto", "# --- keys")
    said = said.replace(
        "def keccak256(data: bytes, /) -> bytes: ...", 'def keccak256(data: bytes, /) -> bytes:\n    """Ours."""'
    )
    assert len(said) > len(contract) + 10
    assert keeps(said)
    assert not keeps(contract.replace("def keccak256(data: bytes, /) -> bytes: ...", ""))
    assert not keeps("")


def test_one_that_knows_nothing_of_a_contract_is_refused_too(copied: Path) -> None:
    # this module stands in for a compiled extension that has no ABI check
    (copied / "_native.py").write_text("class NativeError(Exception):\n    pass\n")
    done = start(copied)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"The compiled half of Ophion, {copied / '_native.py'}, was built for other")


def test_one_that_is_missing_or_cannot_be_loaded_is_said_likewise(copied: Path) -> None:
    done = start(copied)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "The compiled half of Ophion is missing: run `make build`, or install Ophion again.\n"
    (copied / EXTENSION.name).write_bytes(b"\x7fELF of another machine")
    done = start(copied)
    assert done.returncode == 1
    assert done.stderr.startswith("The compiled half of Ophion cannot be loaded (")
    assert done.stderr.endswith("): run `make build`, or install Ophion again.\n")
    assert done.stderr.count("\n") == 1


def test_a_package_without_the_words_of_the_contract_is_used_as_it_is(copied: Path) -> None:
    (copied / EXTENSION.name).symlink_to(EXTENSION)
    (copied / "_native.pyi").unlink()
    assert start(copied).returncode == 0

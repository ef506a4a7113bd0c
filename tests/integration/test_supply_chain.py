"""Dependencies of Ophion are locked by hash and checked for known vulnerabilities."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import ROOT

LOCKS = ("requirements.lock", "requirements-dev.lock")
PIN = "tomli-w==1.2.0"
WHEEL = "tomli_w-1.2.0-py3-none-any.whl"


def entries(lock: str) -> dict[str, list[str]]:
    """Return the hashes of each locked package."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / lock).read_text().splitlines():
        if "==" in line:
            found[line.partition("==")[0]] = last = []
        elif line.startswith("    --hash=sha256:"):
            last.append(line.removesuffix(" \\").rpartition(":")[2])
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_locked_by_hash_and_none_by_address(lock: str) -> None:
    assert all(entries(lock).values())
    assert all(len(digest) == 64 for hashes in entries(lock).values() for digest in hashes)
    assert "://" not in (ROOT / lock).read_text()


def test_every_crate_is_locked_by_hash() -> None:
    packages = (ROOT / "native" / "Cargo.lock").read_text().split("[[package]]")[1:]
    assert all("checksum = " in package for package in packages if "source = " in package)


def test_nothing_is_installed_without_its_hash_nor_built_first() -> None:
    installs = [line for line in (ROOT / "Makefile").read_text().splitlines() if "pip install" in line]
    assert installs
    assert all("--require-hashes --only-binary=:all:" in line for line in installs)


def test_a_node_runs_with_nothing_that_only_tests_need() -> None:
    assert "wsproto" not in entries("requirements.lock")
    code = "import sys, ophion.node.build; sys.exit('wsproto' in sys.modules or 'h11' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


# --- make lock -----------------------------------------------------------------------------------


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """Serve a package index with one package: an old wheel, the locked wheel, its source."""
    page = tmp_path / "index" / "tomli-w"
    page.mkdir(parents=True)
    names = (
        "tomli_w-1.1.0-py3-none-any.whl",
        WHEEL,
        "tomli_w-1.2.0-cp38-cp38-linux_x86_64.whl",
        "tomli_w-1.2.0.tar.gz",
    )
    links = [f'<a href="../files/{name}#sha256={digest(name)}">{name}</a>' for name in names]
    (page / "index.html").write_text("\n".join(links))
    handler = partial(Quiet, directory=str(tmp_path / "index"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def lock(index: str, file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "lock.py"), f"--index={index}", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_hashes_of_usable_wheels_are_written_behind_their_version(tmp_path: Path, index: str) -> None:
    file = tmp_path / "some.lock"
    file.write_text(f"# why\n-r other.lock\n{PIN} \\\n    --hash=sha256:00\n")
    for _ in range(2):
        assert lock(index, file).returncode == 0
        assert file.read_text() == f"# why\n-r other.lock\n{PIN} \\\n    --hash=sha256:{digest(WHEEL)}\n"


@pytest.mark.parametrize("pin", ["tomli-w==9.9.9", "nothing==1.0"])
def test_a_version_that_is_not_there_is_one_line_and_changes_nothing(tmp_path: Path, index: str, pin: str) -> None:
    file = tmp_path / "some.lock"
    file.write_text(pin + "\n")
    done = lock(index, file)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert file.read_text() == pin + "\n"


# --- make audit ----------------------------------------------------------------------------------


def audit(folder: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """Run the audit on a simulated machine with only these programs, written in Python."""
    folder.mkdir()
    for name, code in programs.items():
        program = folder / name.replace("_", "-")
        program.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
        program.chmod(0o755)
    environment = os.environ | {"PATH": str(folder)}
    command = [sys.executable, str(ROOT / "scripts" / "audit.py")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def finding(*dependencies: dict[str, object]) -> str:
    """Return a pip-audit script that reports these dependencies."""
    found = json.dumps({"dependencies": dependencies})
    return f"open(sys.argv[sys.argv.index('--output') + 1], 'w').write({found!r})"


def test_an_audit_without_tools_says_what_was_not_looked_at(tmp_path: Path) -> None:
    done = audit(tmp_path / "bin")
    assert done.returncode == 2, "nobody takes it for a clean bill"
    assert done.stdout.splitlines() == [
        "crates: NOT checked: cargo-deny is not installed (cargo install --locked cargo-deny)",
        "Python packages: NOT checked: pip-audit is not installed (pipx install pip-audit)",
    ]


def test_packages_without_data_are_not_taken_for_sound(tmp_path: Path) -> None:
    skipped: dict[str, object] = {"name": "h11", "skip_reason": "not found"}
    sound: dict[str, object] = {"name": "cffi", "version": "2.1.1", "vulns": []}
    done = audit(tmp_path / "one", pip_audit=finding(skipped, sound))
    assert "1 of 2 Python packages: NOT checked" in done.stdout
    assert (done.returncode, "Python packages: 1 checked" in done.stdout) == (2, True)
    done = audit(tmp_path / "two", pip_audit="sys.exit('no way to get there')")
    assert "Python packages: NOT checked: advisories not available: no way to get there" in done.stdout


def test_advisories_that_cannot_be_fetched_are_said_to_be_missing(tmp_path: Path) -> None:
    cargo = "sys.exit('no network' if 'fetch' in sys.argv else int('advisories' in sys.argv))"
    done = audit(tmp_path / "bin", cargo=cargo, cargo_deny="")
    assert done.returncode == 2
    assert "advisories of crates: NOT checked: not available: no network" in done.stdout
    assert "crates: no problems (bans, licenses, sources)" in done.stdout


def test_crates_are_looked_at_in_words_that_the_tool_knows(tmp_path: Path) -> None:
    """The audit calls cargo-deny with options of version 0.20: `--offline` before the command, and no
    `--disable-fetch`.
    """
    known = """
words = sys.argv[4:] if sys.argv[1:3] == ['deny', '--manifest-path'] else []
sys.exit(0 if words in (['fetch', 'db'], ['--offline', 'check', 'bans', 'licenses', 'sources', 'advisories']) else 2)
"""
    sound: dict[str, object] = {"name": "cffi", "version": "2.1.1", "vulns": []}
    done = audit(tmp_path / "bin", cargo=known, cargo_deny="", pip_audit=finding(sound))
    assert done.returncode == 0, "everything was looked at"
    assert "crates: no problems (bans, licenses, sources, advisories)" in done.stdout


def test_known_faults_fail_the_audit(tmp_path: Path) -> None:
    faulty: dict[str, object] = {"name": "h11", "version": "0.14", "vulns": [{"id": "X-1", "fix_versions": ["0.16"]}]}
    done = audit(tmp_path / "one", pip_audit=finding(faulty))
    assert (done.returncode, done.stderr) == (1, "h11 0.14: X-1, fixed in 0.16\n")
    done = audit(tmp_path / "two", cargo="sys.exit('yanked' if 'check' in sys.argv else 0)", cargo_deny="")
    assert (done.returncode, done.stderr) == (1, "yanked\n\n")

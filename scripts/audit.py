"""Checks the dependencies for known vulnerabilities: make audit

Two tools read the lock files: cargo-deny checks the crates (advisories, licences, sources: native/deny.toml), pip-audit
checks the Python packages. Both are installed separately and need data from the network. The script prints one line for
each check that could not run. Exit codes: 1 if there is something to fix, 2 if a check could not run, otherwise 0.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CRATES = ("cargo", "deny", "--manifest-path", str(ROOT / "native" / "Cargo.toml"))
LIMIT_S = 300


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1].strip()


class SkippedCheck(NamedTuple):
    """A check that could not run."""

    what: str
    why: str


def crates() -> Iterator[str | SkippedCheck]:
    """Yield the problems of the crates."""
    if shutil.which("cargo-deny") is None:
        yield SkippedCheck("crates", "cargo-deny is not installed (cargo install --locked cargo-deny)")
        return
    checks = ["bans", "licenses", "sources"]
    fetched = run(*CRATES, "fetch", "db")
    if fetched.returncode:
        yield SkippedCheck("advisories of crates", f"not available: {last_line(fetched.stderr)}")
    else:
        checks.append("advisories")
    done = run(*CRATES, "--offline", "check", *checks)
    if done.returncode:
        yield done.stderr + done.stdout
    else:
        print(f"crates: no problems ({', '.join(checks)})")


def packages() -> Iterator[str | SkippedCheck]:
    """Yield the problems of the Python packages."""
    if shutil.which("pip-audit") is None:
        yield SkippedCheck("Python packages", "pip-audit is not installed (pipx install pip-audit)")
        return
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        locks = ("--requirement", str(ROOT / "requirements.lock"), "--requirement", str(ROOT / "requirements-dev.lock"))
        form = ("--format", "json", "--output", str(found), "--progress-spinner", "off")
        done = run("pip-audit", "--require-hashes", "--disable-pip", *form, *locks)
        if not found.exists():
            yield SkippedCheck("Python packages", f"advisories not available: {last_line(done.stderr)}")
            return
        seen = json.loads(found.read_text())["dependencies"]
    # pip-audit skips a package for which it has no advisories, so report such packages
    skipped = [one["name"] for one in seen if "skip_reason" in one]
    if skipped:
        yield SkippedCheck(
            f"{len(skipped)} of {len(seen)} Python packages", f"no advisories available, for example for {skipped[0]}"
        )
    for one in seen:
        for fault in one.get("vulns", ()):
            fixed = ", ".join(fault.get("fix_versions", ())) or "no version yet"
            yield f"{one['name']} {one['version']}: {fault['id']}, fixed in {fixed}"
    if len(skipped) < len(seen):
        print(f"Python packages: {len(seen) - len(skipped)} checked")


def main() -> int:
    faults = skipped_checks = 0
    for found in (*crates(), *packages()):
        if isinstance(found, SkippedCheck):
            skipped_checks += 1
            print(f"{found.what}: NOT checked: {found.why}")
        else:
            faults += 1
            print(found, file=sys.stderr)
    return 1 if faults else 2 if skipped_checks else 0


if __name__ == "__main__":
    sys.exit(main())

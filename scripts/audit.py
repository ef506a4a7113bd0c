"""Known faults of what Ophion is built from: make audit

Two tools look at the lock files: cargo-deny at the crates (advisories, licences, origins: native/deny.toml), pip-audit
at the Python packages. Neither is a part of the project, and both need data from elsewhere. What could not be looked at
is said in one line each, so that silence is never taken for a clean bill. Exits with 1 when there is something to fix,
with 2 when there is not but something could not be looked at.
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
    return (text.strip().splitlines() or ["it says nothing"])[-1].strip()


class Unseen(NamedTuple):
    """Something that could not be looked at."""

    what: str
    why: str


def crates() -> Iterator[str | Unseen]:
    """What is wrong with the crates."""
    if shutil.which("cargo-deny") is None:
        yield Unseen("crates", "cargo-deny is not installed (cargo install --locked cargo-deny)")
        return
    wanted = ["bans", "licenses", "sources"]
    fetched = run(*CRATES, "fetch", "db")
    if fetched.returncode:
        yield Unseen("advisories of crates", f"they cannot be reached: {last_line(fetched.stderr)}")
    else:
        wanted.append("advisories")
    done = run(*CRATES, "--offline", "check", *wanted)
    if done.returncode:
        yield done.stderr + done.stdout
    else:
        print(f"crates: nothing against them ({', '.join(wanted)})")


def packages() -> Iterator[str | Unseen]:
    """What is wrong with the Python packages."""
    if shutil.which("pip-audit") is None:
        yield Unseen("Python packages", "pip-audit is not installed (pipx install pip-audit)")
        return
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        locks = ("--requirement", str(ROOT / "requirements.lock"), "--requirement", str(ROOT / "requirements-dev.lock"))
        form = ("--format", "json", "--output", str(found), "--progress-spinner", "off")
        done = run("pip-audit", "--require-hashes", "--disable-pip", *form, *locks)
        if not found.exists():
            yield Unseen("Python packages", f"their advisories cannot be reached: {last_line(done.stderr)}")
            return
        seen = json.loads(found.read_text())["dependencies"]
    # a package without data is no error for pip-audit: it says that no vulnerabilities are known
    skipped = [one["name"] for one in seen if "skip_reason" in one]
    if skipped:
        yield Unseen(
            f"{len(skipped)} of {len(seen)} Python packages", f"no advisories can be had for {skipped[0]} and so on"
        )
    for one in seen:
        for fault in one.get("vulns", ()):
            fixed = ", ".join(fault.get("fix_versions", ())) or "no version yet"
            yield f"{one['name']} {one['version']}: {fault['id']}, fixed in {fixed}"
    if len(skipped) < len(seen):
        print(f"Python packages: {len(seen) - len(skipped)} looked at")


def main() -> int:
    faults = unseen = 0
    for found in (*crates(), *packages()):
        if isinstance(found, Unseen):
            unseen += 1
            print(f"{found.what}: NOT looked at: {found.why}")
        else:
            faults += 1
            print(found, file=sys.stderr)
    return 1 if faults else 2 if unseen else 0


if __name__ == "__main__":
    sys.exit(main())

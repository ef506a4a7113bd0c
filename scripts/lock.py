"""Writes the hashes of every locked Python package into the lock files: make lock INDEX=URL

    python scripts/lock.py [--index=URL] [FILE ...]

A lock file lists exact versions, one per line. To raise a version, edit its line and run this script. The script reads
the simple page of each package (HTML or JSON) from the index. It writes the hashes of all wheels that a supported
Python can use, on any platform. It writes no URL, because the hash identifies a file. Source packages are left out,
because building them runs tools that are not locked.

Exits with 1 and one line when a version has no wheel, or the index cannot be reached.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag
from urllib.request import Request, urlopen

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).resolve().parent.parent
LOCKS = (ROOT / "requirements.lock", ROOT / "requirements-dev.lock")
OLDEST_PYTHON = 11
ACCEPTED = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
ANSWER_LIMIT_S = 60.0

Hashes = dict[str, str]
"""Maps file names to SHA-256 hashes."""


class Links(HTMLParser):
    """Parses the files of a simple page in HTML. The URL of each file ends with the hash of the file."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Hashes = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address, fragment = urldefrag(dict(attrs).get("href") or "")
        if tag == "a" and fragment.startswith("sha256="):
            self.found[unquote(address).rpartition("/")[2]] = fragment.partition("=")[2]


def files_of(index: str, name: str) -> Hashes:
    """Return the files of a package in the index, with their hashes."""
    request = Request(f"{index.rstrip('/')}/{canonicalize_name(name)}/", headers={"Accept": ACCEPTED})
    with urlopen(request, timeout=ANSWER_LIMIT_S) as answer:
        content = answer.read().decode()
        if "json" in answer.headers.get_content_type():
            return {one["filename"]: one["hashes"]["sha256"] for one in json.loads(content)["files"]}
    links = Links()
    links.feed(content)
    return links.found


def is_usable(tag: Tag) -> bool:
    """Return whether a supported Python can use a wheel with this tag."""
    version = re.fullmatch(r"(py|cp)(\d)(\d*)", tag.interpreter)
    if version is None or version[2] != "3":
        return False
    minor = int(version[3] or "0")
    return version[1] == "py" or tag.abi == "abi3" or minor >= OLDEST_PYTHON


def wheels_of(index: str, name: str, version: str) -> list[str]:
    """Return the hashes of the wheels of one version. Raises `SystemExit` when the version has no wheel."""
    found = []
    for file, digest in files_of(index, name).items():
        try:
            _, of, _, tags = parse_wheel_filename(file)
        except InvalidWheelFilename:
            continue  # the file is a source package, or has a format older than wheels
        if str(of) == version and any(map(is_usable, tags)):
            found.append(digest)
    if not found:
        raise SystemExit(f"{name} {version} has no wheel on this index.")
    return sorted(found)


def locked(content: str, index: str) -> str:
    """Return the lock file with current hashes."""
    lines = []
    for line in content.splitlines():
        if line.startswith("    --hash="):
            continue
        name, is_exact, version = line.removesuffix(" \\").partition("==")
        if is_exact:
            hashes = wheels_of(index, name, version)
            line = " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{digest}" for digest in hashes)])
        lines.append(line)
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", default=os.environ.get("PIP_INDEX_URL"), help="the index to ask (or PIP_INDEX_URL)")
    parser.add_argument("files", nargs="*", type=Path, default=LOCKS)
    chosen = parser.parse_args()
    if not chosen.index:
        parser.error("say which index to ask: --index=URL")
    for file in chosen.files:
        try:
            content = locked(file.read_text(), chosen.index)
        except OSError as error:
            print(f"The index cannot be asked: {error}", file=sys.stderr)
            return 1
        file.write_text(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())

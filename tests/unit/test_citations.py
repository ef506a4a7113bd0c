"""Citations of the specification, such as `json-rpc.md 5.5`, name sections that exist in docs/spec."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "docs" / "spec"
PAGES = ("interface", "json-rpc", "operations", "graphql", "consensus", "networking", "privacy")
PARTS = ("src", "native", "tests", "bench", "scripts", "docs")
SUFFIXES = frozenset({".css", ".graphql", ".html", ".js", ".md", ".py", ".pyi", ".rs", ".sh", ".sol", ".toml", ".ts"})
GENERATED = frozenset({"target", "node_modules", "__pycache__"})

HEADING = re.compile(r"^#{2,4} (\d+(?:\.\d+)?)\.? ", re.MULTILINE)

# The pattern matches a space, or a line end with the comment marker of the next line.
_GAP = r"(?:[ \t]+|[ \t]*\n[ \t]*(?:(?://[/!]?|#|\*)[ \t]*)?)"
_NUMBER = r"\d+(?:\.\d+)?(?!\.?\d)(?![A-Za-z%])"
_SEPARATOR = rf"(?:{_GAP}\[[A-Z]\])?(?:,{_GAP}(?:and{_GAP})?|{_GAP}(?:and|or|to){_GAP}|[-–])"
CITATION = re.compile(
    rf"(?<![\w-])(?P<page>{'|'.join(PAGES)})\.md`?(?:\]\([^)\s]*\))?,?"
    rf"{_GAP}(?:sections?{_GAP})?(?P<numbers>{_NUMBER}(?:{_SEPARATOR}{_NUMBER})*)"
)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def cited(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields line, page and section number of every citation in a text."""
    for found in CITATION.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        for number in NUMBER.findall(found["numbers"]):
            yield line, found["page"], number


def sources() -> list[Path]:
    return sorted(
        path
        for part in PARTS
        for path in (ROOT / part).rglob("*")
        if path.suffix in SUFFIXES and not GENERATED.intersection(path.parts) and path.is_file()
    )


def headings(page: str) -> list[str]:
    path = SPEC / f"{page}.md"
    return HEADING.findall(path.read_text(encoding="utf-8")) if path.is_file() else []


@cache
def citations() -> dict[str, list[tuple[str, str]]]:
    """Return section numbers by page, each with the file and line that cites it."""
    found: dict[str, list[tuple[str, str]]] = {page: [] for page in PAGES}
    for path in sources():
        for line, page, number in cited(path.read_text(encoding="utf-8")):
            found[page].append((number, f"{path.relative_to(ROOT)}:{line}"))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_cited_sections_exist(page: str) -> None:
    known = frozenset(headings(page))
    broken = [f"{where}: {page}.md {number}" for number, where in citations()[page] if number not in known]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("page", PAGES)
def test_section_numbers_are_unique(page: str) -> None:
    numbers = Counter(headings(page))
    assert numbers
    assert [number for number, count in numbers.items() if count > 1] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(json-rpc.md 5.5)", ["5.5"]),
        ("json-rpc.md, 5.5", ["5.5"]),
        ("json-rpc.md section 5.5 says", ["5.5"]),
        ("`json-rpc.md` 1.10.", ["1.10"]),
        ("[json-rpc.md](spec/json-rpc.md) 2", ["2"]),
        ("json-rpc.md 5.3, 5.10, 6, 7.1).", ["5.3", "5.10", "6", "7.1"]),
        ("json-rpc.md 3.4 and 3.5", ["3.4", "3.5"]),
        ("json-rpc.md 3.1-3.3", ["3.1", "3.3"]),
        ("json-rpc.md 7.1 to 7.3", ["7.1", "7.3"]),
        ("json-rpc.md 5.9 [M], 9 line 20", ["5.9", "9"]),
        ("json-rpc.md 9, lines 19 and 20", ["9"]),
        ("json-rpc.md 2, rules 1, 3 and 4", ["2"]),
        ("whichever groups are (json-rpc.md\n    1.10).", ["1.10"]),
        ("# as in json-rpc.md\n# 5.6, 1.10", ["5.6", "1.10"]),
        ("//! as in json-rpc.md 4 and\n//! 7.2", ["4", "7.2"]),
        ("json-rpc.md 5.9; operations.md says more", ["5.9"]),
        ("json-rpc.md\n\n1. a list", []),
        ("json-rpc.md says 3", []),
        ("my-json-rpc.md 99", []),
    ],
)
def test_forms_of_citations(text: str, expected: list[str]) -> None:
    assert [number for _, _, number in cited(text)] == expected

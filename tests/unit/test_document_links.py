"""Documents written by hand: links resolve, and decision numbers are unique."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.conftest import ROOT

LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    parts = ("docs", "examples", "packaging", "bench", "tests", "native")
    found = [page for part in parts for page in (ROOT / part).rglob("*.md") if "target" not in page.parts]
    return sorted([*ROOT.glob("*.md"), *(page for page in found if "node_modules" not in page.parts)])


def test_links_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages()
        for target in LINK.findall(FENCE.sub("", page.read_text()))
        if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists()
    ]
    assert broken == []


def test_a_decision_has_a_number_of_its_own_and_its_title_has_it_too() -> None:
    decisions = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    numbers = Counter(path.name.partition("-")[0] for path in decisions)
    assert [number for number, count in numbers.items() if count > 1] == []
    titled = {path.name: path.read_text().partition("\n")[0] for path in decisions}
    assert [name for name, title in titled.items() if int(name.partition("-")[0]) not in numbers_in(title)] == []


def numbers_in(title: str) -> list[int]:
    return [int(found) for found in re.findall(r"\d+", title)]

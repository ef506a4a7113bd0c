"""Names, comments and texts use the words of docs/glossary.md."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

SUFFIXES = {".py", ".pyi", ".rs", ".js", ".html", ".md", ".toml"}
FOLDERS = ("src", "native", "docs", "bench", "scripts", "examples", "packaging")
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "Makefile", "pyproject.toml")
REPLACED = {
    r"rooms?": "package, module, layer",
    r"whoever|somebody|nobody|anybody|everybody": "the part that acts",
    r"in vain": "failed",
    r"crowds?|doorway|visitors?": "flood guard, pending connections, inbound",
    r"scribe|committee|waiting[_ ]out": "message factory, validator set, lost-state recovery",
    r"in haste|haste": "block priority",
    r"the original client": "Pantheon 1.2, Besu 21.10",
    r"mend(s|ed|ing)?": "fix",
    r"time-outs?": "timeout",
    r"second[- ]day": "operations",
    r"(comes?|came) back|(gives?|gave) way": "returns, reconnects, is evicted",
    r"(breaks?|broke) off|(is|are) said to": "fails, is reported as",
    r"so many seconds": "N seconds, a limit with its unit",
    r"dialects?": "protocol variant",
    r"MOST_\w+|LEAST_\w+": "MAX_…, MIN_…",
    r"has_room(_for)?|is_heard|crowded|told apart": "fits, may_call, busy, distinguished",
    r"heard|wishes|crowded_out|has_place|HasPlace": "received, preferences, dropped, has_reserved_slot",
    r"by the book|as one likes|made-up time|time being": "correct, any, manual clock, for now",
}
ALLOWED: dict[tuple[str, str], str] = {
    ("docs/glossary.md", ""): "the glossary names what it replaces",
    ("CONTRIBUTING.md", "crowd"): "an example of a bad name",
}


def tracked() -> list[Path]:
    done = subprocess.run(["git", "ls-files", *FOLDERS, *PAGES], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.splitlines() if Path(name).suffix in SUFFIXES or name in PAGES]


def is_allowed(name: str, word: str) -> bool:
    return (name, "") in ALLOWED or (name, word.lower()) in ALLOWED


@pytest.mark.parametrize(("pattern", "better"), REPLACED.items(), ids=list(REPLACED.values()))
def test_replaced_words_are_gone(pattern: str, better: str) -> None:
    word = re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", 0 if pattern.startswith("MOST") else re.IGNORECASE)
    found = []
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
            found += [
                f"{name}:{number}: {match}"
                for match in map(re.Match.group, word.finditer(line))
                if not is_allowed(name, str(match))
            ]
    assert found == [], f"write {better}"


NAMED_BY_CONCEPT = ("cli", "consensus", "enclave", "enclave_http", "peers", "privacy", "producer")
NOT_IN_TEST_NAMES = re.compile(
    r"def (test_(?:\w+_)?(?:nobody|somebody|whoever|everybody|anybody|told|heard|wished|crowd|room|vain)(?:_\w+)?)\("
)


def test_names_of_tests_say_what_acts() -> None:
    found = []
    for folder in NAMED_BY_CONCEPT:
        for path in sorted((ROOT / "tests" / "unit" / folder).rglob("test_*.py")):
            found += [f"{path.name}: {name}" for name in NOT_IN_TEST_NAMES.findall(path.read_text())]
    assert found == []

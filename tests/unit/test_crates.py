"""Tests the structure of the Rust workspace: only one crate depends on Python, and modules have no import cycles."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

NATIVE = ROOT / "native"
CRATES = sorted(path.parent.parent.name for path in NATIVE.glob("*/src/lib.rs"))
MAX_SHARE = 0.30

Graph = dict[Path, set[Path]]


@cache
def files(crate: str) -> dict[tuple[str, ...], Path]:
    """Return the files of a crate by module path."""
    found = {}
    for path in (NATIVE / crate / "src").rglob("*.rs"):
        parts = path.relative_to(NATIVE / crate / "src").with_suffix("").parts
        found[parts[:-1] if parts[-1] in {"mod", "lib"} else parts] = path
    return found


def expanded(tree: str) -> Iterator[str]:
    """Expand `a::{b, c::{d, e}}` to `a::b`, `a::c::d`, `a::c::e`."""
    head, brace, tail = tree.partition("{")
    if not brace:
        yield tree
        return
    depth, start = 0, 0
    for at, letter in enumerate(tail):
        if depth == 0 and letter in ",}":
            for branch in expanded(tail[start:at]):
                yield head + branch
            start = at + 1
        depth += (letter == "{") - (letter == "}")


def paths(text: str) -> Iterator[str]:
    """Return all paths that a file uses, without its inline tests."""
    code = re.sub(r"//.*", "", text.partition("#[cfg(test)]\nmod tests {")[0])
    for tree in re.findall(r"\buse ([^;]+);", code):
        yield from expanded(re.sub(r"\s", "", tree))
    yield from re.findall(r"(?<![\w:])((?:crate|super|self)(?:::\w+)+)", code)


def imports(crate: str) -> Graph:
    """Return imports between the files of a crate."""
    known = files(crate)
    graph: Graph = {path: set() for path in known.values()}
    for module, path in known.items():
        for name in paths(path.read_text()):
            first, *rest = name.split("::")
            if first == "crate":
                target: tuple[str, ...] = tuple(rest)
            elif first == "super":
                target = (*module[:-1], *rest)
            elif first == "self" or (*module, first) in known:
                target = (*module, *(rest if first == "self" else (first, *rest)))
            else:
                continue
            while target not in known:
                target = target[:-1]
            graph[path].add(known[target])
    return graph


def cycles(graph: dict[Path, set[Path]]) -> list[list[Path]]:
    """Return groups of two or more nodes that reach each other."""
    reached = {}
    for start in graph:
        seen: set[Path] = set()
        waiting = list(graph[start])
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += graph[node]
        reached[start] = seen
    groups = {frozenset(n for n in graph if n in reached[m] and m in reached[n]) | {m} for m in graph}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def named(groups: Iterable[list[Path]]) -> list[list[str]]:
    return [[str(path.relative_to(NATIVE)) for path in group] for group in groups]


@pytest.mark.parametrize("crate", CRATES)
def test_no_import_cycle_has_more_than_two_files(crate: str) -> None:
    assert named(group for group in cycles(imports(crate)) if len(group) > 2) == []


@pytest.mark.parametrize("crate", CRATES)
def test_folders_have_no_import_cycles(crate: str) -> None:
    folders: Graph = {path.parent: set() for path in files(crate).values()}
    for path, used in imports(crate).items():
        folders[path.parent] |= {other.parent for other in used} - {path.parent}
    assert named(cycles(folders)) == []


def test_no_crate_has_a_third_of_the_lines() -> None:
    lines = Counter({name: sum(len(path.read_text().splitlines()) for path in files(name).values()) for name in CRATES})
    (largest, most), *_ = lines.most_common()
    assert most / lines.total() < MAX_SHARE, largest


def test_only_the_python_crate_depends_on_pyo3() -> None:
    knowing = [name for name in CRATES if re.search(r"\bpyo3\b", (NATIVE / name / "Cargo.toml").read_text())]
    assert knowing == ["python"]


def test_all_crates_but_python_are_tested_by_default() -> None:
    """`cargo test` in native/ runs the tests of all crates except `python` and links no interpreter."""
    manifest = (NATIVE / "Cargo.toml").read_text()
    members, tested = (
        re.findall(r'"([^"]+)"', re.search(rf"^{name} = \[([^\]]*)\]", manifest, re.M)[1])  # type: ignore[index]
        for name in ("members", "default-members")
    )
    assert sorted(members) == CRATES
    assert sorted({*tested, "python"}) == CRATES


def test_extension_and_crate_tests_select_the_same_features() -> None:
    """`cargo test` builds each crate with its feature `default`. If the extension selects the same features by other
    names, cargo compiles the crate, and all crates above it, twice.
    """
    manifests = {name: tomllib.loads((NATIVE / name / "Cargo.toml").read_text()) for name in CRATES}
    features = manifests["python"]["features"]
    selected = {item for name in features["default"] for item in features[name]}
    with_default = {one["package"]["name"] for name, one in manifests.items() if "features" in one and name != "python"}
    assert selected == {f"{name}/default" for name in with_default}


def test_cycles_are_found() -> None:
    a, b, c, d = (Path(name) for name in "abcd")
    assert cycles({a: {b}, b: {c, b}, c: {a}, d: {a}}) == [[a, b, c]]
    assert list(expanded("a::{b,c::{d,e},f}")) == ["a::b", "a::c::d", "a::c::e", "a::f"]

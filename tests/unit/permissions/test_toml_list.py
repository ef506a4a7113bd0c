"""A list inside a TOML text is found and changed without touching other text."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.permissions.toml_list import TomlList, find_list

KEYS = ("names", "later-names")


def found(text: str) -> TomlList:
    result = find_list(text, KEYS)
    assert result is not None
    return result


def values(text: str) -> list[str]:
    table: dict[str, Any] = tomllib.loads(text)
    return next(table[key] for key in KEYS if key in table)


LAID_OUT = """# who may
other = { names = ["no"], n = [1, 2] }
text = \"\"\"
names = ["not this"]
\"\"\"
names = [
  "a",  # Ali
  'b',
  # those of the bank
  "c"   # Cem
]
last = [["x"], ["names"]]

[table]
names = ["nor this"]
"""


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ('names=["a","b"]', ["a", "b"]),
        ('names=[]\nother="x"', []),
        ('"names" = ["a"]', ["a"]),
        ("'later-names' = [ 'a' ]", ["a"]),
        ('names = ["\\u0061", """b"""]', ["a", "b"]),
        ('x.names = ["no"]\nnames = ["a"]', ["a"]),
        (LAID_OUT, ["a", "b", "c"]),
        ('names = ["a", "b",]\r\nz = 1\r\n', ["a", "b"]),
    ],
)
def test_a_list_is_found_at_the_top_level_only(text: str, entries: list[str]) -> None:
    assert [entry.value for entry in found(text).entries] == entries == values(text)


@pytest.mark.parametrize("text", ["", "a=1", '[names]\nb=["c"]', '[t]\nnames=["a"]', 'x = { names = ["a"] }'])
def test_a_list_that_is_not_there_is_not_found(text: str) -> None:
    assert find_list(text, KEYS) is None


def test_entries_know_their_line() -> None:
    whole = found(LAID_OUT)
    assert [whole.line_of(entry) for entry in whole.entries] == [7, 8, 10]


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("names=[]", 'names=["d","e"]'),
        ('names=["a"]', 'names=["a","d","e"]'),
        ('names = ["a", "b"] # two', 'names = ["a", "b", "d", "e"] # two'),
        ('names = ["a",]', 'names = ["a","d","e",]'),
        ('names = [\n  "a"  # Ali\n]', 'names = [\n  "a",  # Ali\n  "d",\n  "e"\n]'),
        ('names = [\n  "a",  # Ali\n]\n', 'names = [\n  "a",  # Ali\n  "d",\n  "e",\n]\n'),
        ('names = [\n  "a"\n  , "b"\n  ,\n]\n', 'names = [\n  "a"\n  , "b","d","e"\n  ,\n]\n'),
    ],
)
def test_entries_are_added_in_the_style_that_is_there(text: str, after: str) -> None:
    changed = found(text).with_added(["d", "e"])
    assert changed == after
    assert values(changed) == [*values(text), "d", "e"]


@pytest.mark.parametrize(
    ("text", "gone", "after"),
    [
        ('names=["a","b","c"]', "b", 'names=["a","c"]'),
        ('names=["a","b","c"]', "c", 'names=["a","b"]'),
        ('names=["a", "b", "c"]', "bc", 'names=["a"]'),
        ('names=["a","b"]', "ab", "names=[]"),
        ('names=["a", "b", ]', "b", 'names=["a", ]'),
        ('names=[\n  "a", # Ali\n  "b" # Bea\n]', "b", 'names=[\n  "a" # Ali\n]'),
        ('names=[\n  "a", # Ali\n  "b" # Bea\n]', "a", 'names=[\n  "b" # Bea\n]'),
    ],
)
def test_entries_are_cut_out(text: str, gone: str, after: str) -> None:
    changed = found(text).without(lambda value: value in gone)
    assert changed == after


def test_comments_and_other_keys_survive() -> None:
    changed = found(LAID_OUT).without(lambda value: value == "b")
    changed = found(changed).with_added(["d"])
    assert changed == LAID_OUT.replace("  'b',\n", "").replace('  "c"   # Cem\n', '  "c",   # Cem\n  "d"\n')


layout = st.sampled_from(["", " ", "\n", "\n  ", " # x, ] \" '\n", "\t"])
word = st.text(st.characters(codec="utf-8", exclude_characters="\x7f", exclude_categories=["Cc", "Cs"]), max_size=5)


@given(st.lists(st.tuples(layout, word, layout), max_size=6), layout, st.booleans(), st.data())
def test_any_layout_keeps_what_is_not_changed(
    items: list[tuple[str, str, str]], end: str, has_last_comma: bool, data: st.DataObject
) -> None:
    body = ",".join(before + json.dumps(value, ensure_ascii=False) + after for before, value, after in items)
    comma = "," if items and has_last_comma else ""
    text = f'first = "names = ["\nnames = [{body}{comma}{end}] # end\nrest = {{a = ["names"]}}\n[t]\nnames = []\n'
    table = tomllib.loads(text)
    removed = data.draw(st.sets(st.sampled_from([value for _, value, _ in items]))) if items else set()
    added = data.draw(st.lists(word, max_size=3))
    changed = found(text).without(removed.__contains__)
    changed = found(changed).with_added(added) if added else changed
    expected = [value for _, value, _ in items if value not in removed] + added
    assert tomllib.loads(changed) == table | {"names": expected}

"""Files of operators, and what was named by mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.runtime.operator_files import MAX_BYTES, content_of, table_of


def file_of(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "file"
    path.write_bytes(content)
    return path


def test_a_file_of_usual_size_is_read(tmp_path: Path) -> None:
    assert content_of(file_of(tmp_path, b"x" * MAX_BYTES)) == b"x" * MAX_BYTES


def test_what_has_no_end_is_not_read_to_it() -> None:
    with pytest.raises(ValueError, match="more than 1048576 bytes"):
        content_of(Path("/dev/zero"))


def test_text_is_utf_8_whatever_the_locale_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    assert table_of(file_of(tmp_path, 'name = "Zoë"'.encode())) == {"name": "Zoë"}


LONG_KEYS = {
    "dotted": b".".join([b"a"] * 30_000) + b"=1",
    "spaced": b" . ".join([b"a"] * 30_000) + b"=1",
    "quoted": b".".join([b'"a"'] * 30_000) + b"=1",
    "escaped": b".".join([rb'"\""'] * 30_000) + b"=1",
    "literal": b".".join([b"'a'"] * 30_000) + b"=1",
    "header": b"[" + b".".join([b"a"] * 30_000) + b"]",
    "inline": b"x={" + b".".join([b"a"] * 30_000) + b"=1}",
}


@pytest.mark.parametrize("name", LONG_KEYS)
def test_keys_that_would_take_minutes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a key of more than 64 parts"):
        table_of(file_of(tmp_path, LONG_KEYS[name]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"x = " + b"[" * 5000, "nested too deeply"),
        (b"x = \xff", "not UTF-8 text"),
        (b"x = " + b"1" * 5000, "4300 digits"),
        (b"x = ", "Invalid value"),
    ],
    ids=["nested", "not text", "huge number", "no value"],
)
def test_mistakes_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        table_of(file_of(tmp_path, content))


def test_long_values_and_many_keys_are_no_mistake(tmp_path: Path) -> None:
    peers = ", ".join(f'"enode://{"ab" * 64}@10.0.0.{number}:30303"' for number in range(200))
    lines = [f"bootnodes = [{peers}]", "a.b.c = 1", f'path = "{"x" * 100_000}"', *(f"k{n} = 1" for n in range(10_000))]
    found = table_of(file_of(tmp_path, "\n".join(lines).encode()))
    assert len(found["bootnodes"]) == 200
    assert len(found) == 10_003

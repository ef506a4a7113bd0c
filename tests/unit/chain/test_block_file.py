"""Tests that files are split into blocks."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.chain import block_file
from ophion.chain.block_file import file_size, split_blocks
from ophion.errors import CommandError, DecodeError
from ophion.primitives import rlp

items = st.lists(st.binary(max_size=400).map(lambda data: rlp.encode([data])), max_size=12)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "blocks.rlp"


def split(path: Path) -> list[tuple[int, bytes]]:
    with path.open("rb") as file:
        return list(split_blocks(file, path))


@given(items, st.integers(1, 50))
def test_blocks_come_out_whole_whatever_the_size_of_the_pieces(blocks: list[bytes], piece: int) -> None:
    content = b"".join(blocks)
    size = block_file.file_size
    chunk = block_file._CHUNK
    block_file.file_size = lambda _: len(content)
    block_file._CHUNK = piece  # type: ignore[misc]
    try:
        found = list(split_blocks(io.BytesIO(content), Path("memory")))
    finally:
        block_file.file_size = size
        block_file._CHUNK = chunk  # type: ignore[misc]
    assert [raw for _, raw in found] == blocks
    assert [offset for offset, _ in found] == [sum(map(len, blocks[:index])) for index in range(len(blocks))]


def test_an_empty_file_has_no_blocks(place: Path) -> None:
    place.write_bytes(b"")
    assert split(place) == []


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_file_that_ends_inside_a_block_names_its_offset(place: Path, cut: int) -> None:
    first, second = rlp.encode([bytes(100)]), rlp.encode([b"abcdef"])
    place.write_bytes(first + second[:-cut])
    with pytest.raises(DecodeError, match=f"at byte {len(first)}"):
        split(place)


def test_a_length_beyond_all_measure_costs_nothing(place: Path) -> None:
    place.write_bytes(b"\xff" + b"\xff" * 8 + b"abc")
    with pytest.raises(DecodeError, match="ends inside a block of 18446744073709551624 bytes"):
        split(place)


@pytest.mark.parametrize("start", [b"\xf8\x00", b"\xf9", b"\xb8\x00"])
def test_a_length_that_is_not_canonical_is_refused(place: Path, start: bytes) -> None:
    place.write_bytes(start)
    with pytest.raises(DecodeError, match="not a block"):
        split(place)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="^Could not find file to import: "):
        file_size(tmp_path / "nothing")
    with pytest.raises(CommandError, match="^Could not find file to import: "):
        file_size(tmp_path)


def test_a_file_that_shrinks_meanwhile_is_noticed(place: Path) -> None:
    place.write_bytes(rlp.encode([bytes(200)]))
    with pytest.raises(DecodeError, match="became shorter"):
        list(split_blocks(io.BytesIO(b""), place))

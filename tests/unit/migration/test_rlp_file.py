"""Tests an export file as a source of blocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CommandError, DecodeError
from ophion.migration.rlp_file import RlpFileSource
from ophion.testing.besu_database import read_chain
from tests.conftest import DATA

CHAIN = DATA / "chains" / "goquorum-qbft"
BLOCKS = list(read_chain(CHAIN))


def open_file(path: Path) -> RlpFileSource:
    return RlpFileSource(path, engine_for(parse_genesis((CHAIN / "genesis.json").read_bytes()).spec))


def test_blocks_are_found_by_number() -> None:
    source = open_file(CHAIN / "blocks.rlp")
    assert source.head().number == len(BLOCKS) - 1
    assert source.head().hash == BLOCKS[-1][0].hash
    assert source.hash_at(3) == BLOCKS[3][0].hash
    assert source.hash_at(len(BLOCKS)) is None
    assert list(source.blocks(2, 4)) == [raw for _, raw in BLOCKS[2:5]]
    source.close()


def test_a_file_may_begin_later(tmp_path: Path) -> None:
    part = tmp_path / "part.rlp"
    part.write_bytes(b"".join(raw for _, raw in BLOCKS[5:]))
    source = open_file(part)
    assert source.hash_at(4) is None
    assert list(source.blocks(1, 6)) == [BLOCKS[5][1], BLOCKS[6][1]]
    source.close()


def test_gaps_and_other_content_are_refused(tmp_path: Path) -> None:
    part = tmp_path / "part.rlp"
    part.write_bytes(BLOCKS[1][1] + BLOCKS[3][1])
    with pytest.raises(CommandError, match="Blocks are missing or stand twice"):
        open_file(part)
    part.write_bytes(b"")
    with pytest.raises(CommandError, match="holds no blocks"):
        open_file(part)
    part.write_bytes(b"\xc1\x80")
    with pytest.raises(DecodeError, match="at byte 0"):
        open_file(part)
    with pytest.raises(CommandError, match="No such file"):
        open_file(tmp_path / "nowhere")

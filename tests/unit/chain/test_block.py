"""Tests blocks decoded from and encoded to RLP."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ophion.chain.block import decode_block, encode_block, ommers_of, peek_header
from ophion.consensus.pow import PowEngine
from ophion.errors import DecodeError
from ophion.primitives import rlp
from tests.conftest import DATA
from tests.unit.consensus.stories import genesis

ENGINE = PowEngine(genesis({"ethash": {}}).spec)
FILE = (DATA / "original-chain" / "test.blocks").read_bytes()


def blocks() -> list[bytes]:
    result, offset = [], 0
    while offset < len(FILE):
        end = rlp.item_end(FILE, offset)
        result.append(FILE[offset:end])
        offset = end
    return result


BLOCKS = blocks()


def test_public_blocks_survive_a_round_trip() -> None:
    for raw in BLOCKS:
        block = decode_block(raw, ENGINE)
        assert encode_block(block) == raw
        assert peek_header(raw, ENGINE) == block.header
        assert len(ommers_of(block.body)) == len(block.body.ommers)
        around = b"\x01" + raw + b"\x02"
        assert decode_block(around, ENGINE, 1, len(raw) + 1).header == block.header
        assert peek_header(around, ENGINE, 1, len(raw) + 1) == block.header


@pytest.mark.parametrize(
    "raw", [b"", b"\x80", b"\xc0", b"\xc1\x80", b"\xc3\xc0\xc0\xc0", b"\xf9\xff\xff", BLOCKS[1] + b"\x00"]
)
def test_what_is_no_block_is_one_clear_error(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_block(raw, ENGINE)
    with pytest.raises(DecodeError):
        peek_header(raw, ENGINE)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, len(BLOCKS[5]) - 1), st.integers(1, 255))
def test_a_changed_byte_gives_another_block_or_one_error(position: int, change: int) -> None:
    raw = bytearray(BLOCKS[5])
    raw[position] ^= change
    try:
        block = decode_block(bytes(raw), ENGINE)
    except DecodeError:
        return
    assert encode_block(block) == bytes(raw)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_no_block(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_block(raw, ENGINE)


def test_the_sample_is_there() -> None:
    assert len(BLOCKS) == 33
    assert Path(DATA / "original-chain" / "genesis.json").exists()

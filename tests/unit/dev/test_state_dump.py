"""Tests dumps in Anvil's format, as bytes."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from ophion.dev.state_dump import BadStateFile, decode_dump, encode_dump, load

ADDRESS = "0x" + "aa" * 20


def test_what_is_packed_can_be_read() -> None:
    document = {"accounts": {"0x01": {"nonce": 1}}}
    assert decode_dump(encode_dump(document)) == document
    assert decode_dump(json.dumps(document).encode()) == document


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b"{}", b'{"accounts": []}', b"\x1f\x8bnonsense"])
def test_what_is_no_dump_is_refused(content: bytes) -> None:
    with pytest.raises(BadStateFile):
        decode_dump(content)


def test_a_compressed_list_is_refused() -> None:
    with pytest.raises(BadStateFile):
        decode_dump(gzip.compress(b"[1]"))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"accounts": {"0x12": {}}}, "1 bytes instead of 20"),
        ({"accounts": {ADDRESS: 5}}, "'int' object"),
        ({"accounts": {ADDRESS: {"balance": "0x1" + "00" * 32}}}, "not within 256 bits"),
        ({"accounts": {ADDRESS: {"nonce": -1}}}, "-1 is not within 64 bits"),
        ({"accounts": {ADDRESS: {"storage": {"0x1": "0x" + "ff" * 33}}}}, "not within 256 bits"),
        ({"accounts": {}, "block": {"timestamp": "0x" + "ff" * 10}}, "not within 40 bits"),
        ({"accounts": {}, "best_block_number": "abc"}, "invalid literal"),
    ],
)
def test_values_out_of_range_are_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(BadStateFile, match=reason):
        asyncio.run(load(None, changed))  # type: ignore[arg-type]

"""Tests dumps in Anvil's format, as bytes."""

from __future__ import annotations

import gzip
import json

import pytest

from ophion.dev.state_dump import BadStateFile, packed, unpacked


def test_what_is_packed_can_be_read() -> None:
    document = {"accounts": {"0x01": {"nonce": 1}}}
    assert unpacked(packed(document)) == document
    assert unpacked(json.dumps(document).encode()) == document


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b"{}", b'{"accounts": []}', b"\x1f\x8bnonsense"])
def test_what_is_no_dump_is_refused(content: bytes) -> None:
    with pytest.raises(BadStateFile):
        unpacked(content)


def test_a_compressed_list_is_refused() -> None:
    with pytest.raises(BadStateFile):
        unpacked(gzip.compress(b"[1]"))

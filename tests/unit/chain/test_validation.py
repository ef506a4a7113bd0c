"""Checks body and results against the header. test_block_import.py tests the other rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.chain import validation
from ophion.chainspec.dev_network import dev_genesis
from ophion.errors import InvalidBlock
from ophion.native.transactions import Body
from ophion.testing.signing import DEV_KEYS, legacy_transaction


def test_from_osaka_on_a_block_is_at_most_eight_mebibytes(tmp_path: Path) -> None:
    osaka, prague = dev_genesis("osaka"), dev_genesis("prague")
    header = osaka.header(bytes(32))
    data = bytes(1024 * 1024)
    raws = [legacy_transaction(DEV_KEYS[0], nonce, data=data, gas=10**7) for nonce in range(9)]
    small, large = Body.of(raws[:7], [], []), Body.of(raws, [], [])
    validation.check_body(header, small, osaka.spec.fork_at(1, 1))
    validation.check_body(header, large, prague.spec.fork_at(1, 1))
    with pytest.raises(InvalidBlock, match="block size: got 9[0-9]+, expected at most 8388608"):
        validation.check_body(header, large, osaka.spec.fork_at(1, 1))


def test_a_body_belongs_to_the_header_that_names_its_roots() -> None:
    header = dev_genesis("osaka").header(bytes(32))
    validation.check_belongs(header, Body.of([], [], []))
    with pytest.raises(InvalidBlock, match="withdrawals root: got 0x[0-9a-f]+, expected nothing"):
        validation.check_belongs(header, Body.of([], [], None))

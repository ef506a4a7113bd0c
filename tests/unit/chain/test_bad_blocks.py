"""The list of bad blocks is bounded."""

from __future__ import annotations

from ophion.chain.bad_blocks import BadBlocks
from ophion.chainspec.dev_network import dev_genesis
from ophion.errors import InvalidBlock, InvalidHeader
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader

HEADER = dev_genesis().header(bytes(32))


def hashed(number: int) -> HashedHeader:
    return HashedHeader(HEADER, number.to_bytes(32, "big"))


def test_the_newest_are_remembered_first() -> None:
    memory = BadBlocks()
    body = Body.of([], [], None)
    for number in range(200):
        memory.add(hashed(number), body, InvalidBlock(f"rule {number}"))
    recent = memory.recent()
    assert len(recent) == 128
    assert recent[0].header == hashed(199)
    assert memory.get(hashed(0).hash) is None
    last = memory.get(hashed(199).hash)
    assert last is not None
    assert last.error.rule == "rule 199"


def test_the_error_is_made_anew_so_that_nothing_hangs_on_its_traceback() -> None:
    memory = BadBlocks()
    raised = InvalidHeader("gas limit", 5, 6)
    memory.add(hashed(7), Body.of([], [], None), raised)
    found = memory.get(hashed(7).hash)
    assert found is not None
    assert found.error is not raised
    assert (
        str(found.error) == f"Invalid header at block number 0 (0x{hashed(7).hash.hex()}): gas limit: got 5, expected 6"
    )

"""From a block parameter to a block."""

from __future__ import annotations

import pytest

from ophion.errors import RpcError
from ophion.primitives.types import BlockTag
from ophion.rpc.language.wire_types import CanonicalHash
from ophion.rpc.questions.blocks import header_at, read_at, view_at
from tests.unit.rpc.interface import Interface


def test_a_header_is_found_by_tag_number_and_hash(sample: Interface) -> None:
    head = sample.node.queries.head
    for block in (BlockTag.LATEST, BlockTag.PENDING, 32, head.hash, CanonicalHash(head.hash)):
        assert header_at(sample.context, block) == head
    for unknown in (33, -1, b"\xab" * 32, CanonicalHash(b"\xab" * 32)):
        assert header_at(sample.context, unknown) is None
        assert view_at(sample.context, unknown) is None


def test_a_block_off_the_canonical_chain_is_refused_where_it_must_be_canonical(sample: Interface) -> None:
    queries = sample.node.queries
    genesis = queries.header(0)
    assert genesis is not None
    canonical = queries.is_canonical
    try:
        queries.is_canonical = lambda header: False  # type: ignore[method-assign]
        with pytest.raises(RpcError, match="Invalid input"):
            header_at(sample.context, CanonicalHash(genesis.hash))
        assert header_at(sample.context, genesis.hash) == genesis
    finally:
        queries.is_canonical = canonical  # type: ignore[method-assign]


def test_reading_waits_only_for_a_pending_block_that_is_not_built(dev: Interface) -> None:
    assert read_at(dev.context, BlockTag.LATEST, lambda view: view.header.number) == 0
    assert read_at(dev.context, 7, lambda view: view.header.number) is None
    waiting = read_at(dev.context, BlockTag.PENDING, lambda view: view.header.number)
    assert not isinstance(waiting, int | None)
    assert dev.run(waiting) == 1  # type: ignore[arg-type]
    assert read_at(dev.context, BlockTag.PENDING, lambda view: view.header.number) == 1

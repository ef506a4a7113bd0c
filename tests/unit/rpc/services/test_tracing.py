"""Tests trace options, and blocks that can be traced."""

from __future__ import annotations

import pytest

from ophion.errors import RpcError
from ophion.rpc.services.tracing import NotTraceable, decode_trace_options, traced_block, transaction_at
from tests.unit.rpc.interface import Interface


def test_a_tracer_is_known_by_its_name() -> None:
    assert not decode_trace_options({"disableMemory": True, "what": 1}).is_named
    assert not decode_trace_options({"tracer": None}).is_named
    for name in ("", "callTracer", "prestateTracer", "flatCallTracer", "4byteTracer"):
        assert decode_trace_options({"tracer": name, "tracerConfig": {"withLog": True}}).is_named


@pytest.mark.parametrize(
    "options",
    [
        [],
        {"tracer": "noSuchTracer"},
        {"tracer": 4},
        {"tracer": "callTracer", "tracerConfig": "fast"},
        {"disableStack": "perhaps"},
        {"tracer": "callTracer", "tracerConfig": {"withLog": 7}},
    ],
)
def test_options_that_make_no_sense_are_refused(options: object) -> None:
    with pytest.raises(RpcError) as refused:
        decode_trace_options(options)
    assert refused.value.code == -32602


def test_genesis_and_unknown_blocks_cannot_be_traced(sample: Interface) -> None:
    for header in (None, sample.context.queries.chain.canonical(0)):
        with pytest.raises(NotTraceable):
            traced_block(sample.context, header)
    with pytest.raises(NotTraceable):
        transaction_at(sample.context, bytes(32))

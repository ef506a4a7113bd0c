"""Tests which whole-block traces the cache stores, and when a trace is executed again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.events import ChainBlock
from ophion.rpc.services.trace_cache import CachedSource, RecordedSource, TraceCache
from ophion.testing.node_core import open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface

FIRST, SECOND = (b"\1" * 32, b"flat"), (b"\2" * 32, b"flat")


class Pieces:
    """A source with given pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self._left: Iterator[bytes] = iter(pieces)
        self.is_closed = False

    def next(self) -> bytes | None:
        return next(self._left, None)

    def close(self) -> None:
        self.is_closed = True


def drained(source: RecordedSource | CachedSource) -> list[bytes]:
    return list(iter(source.next, None))  # type: ignore[arg-type]


def test_a_complete_trace_is_stored_in_its_pieces() -> None:
    cache = TraceCache()
    assert cache.get(FIRST) is None
    source = RecordedSource(Pieces(b"[1,", b"2]"), cache, FIRST)
    assert source.next() == b"[1,"
    assert cache.get(FIRST) is None
    assert drained(source) == [b"2]"]
    found = cache.get(FIRST)
    assert found == (b"[1,", b"2]")
    assert drained(CachedSource(found)) == [b"[1,", b"2]"]
    assert cache.held_bytes == 5


def test_a_trace_whose_client_left_is_not_stored() -> None:
    cache, pieces = TraceCache(), Pieces(b"[1,", b"2]")
    source = RecordedSource(pieces, cache, FIRST)
    source.next()
    source.close()
    assert pieces.is_closed
    assert drained(source) == [b"2]"]
    assert cache.get(FIRST) is None


def test_a_long_trace_is_passed_on_and_not_stored() -> None:
    cache = TraceCache(max_bytes=40)
    assert drained(RecordedSource(Pieces(b"x" * 6, b"y" * 5), cache, FIRST)) == [b"x" * 6, b"y" * 5]
    assert cache.get(FIRST) is None
    assert cache.held_bytes == 0


def test_the_trace_that_was_not_requested_for_the_longest_time_is_evicted() -> None:
    cache = TraceCache(max_bytes=10)
    cache.keep(FIRST, (b"12345",))
    cache.keep(SECOND, (b"12345",))
    cache.keep(SECOND, (b"other",))
    assert cache.get(FIRST) is not None
    cache.keep((b"\3" * 32, b"flat"), (b"123",))
    assert cache.get(SECOND) is None
    assert cache.get(FIRST) is not None
    assert cache.held_bytes == 8


@pytest.fixture
def traced(dev: Interface, monkeypatch: pytest.MonkeyPatch) -> tuple[Interface, list[str]]:
    """Return a node with a transfer in block 1, and a list that grows with every executed trace."""
    executed: list[str] = []
    for module, name in (
        ("trace", "trace_flat"),
        ("debug_trace", "trace_block"),
        ("debug_trace", "trace_transaction"),
    ):
        path = f"ophion.rpc.methods.{module}.{name}"
        real: Any = __import__(f"ophion.rpc.methods.{module}", fromlist=[name]).__dict__[name]

        def counted(*arguments: Any, real: Any = real, name: str = name) -> Any:
            executed.append(name)
            return real(*arguments)

        monkeypatch.setattr(path, counted)
    dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[0], 0, to=DEV_KEYS[1].address, value=1)))
    return dev, executed


def test_a_recent_block_is_traced_once_for_each_kind(traced: tuple[Interface, list[str]]) -> None:
    node, executed = traced
    block = node.ask("eth_getBlockByNumber", "0x1")["hash"]
    calls = {"tracer": "callTracer"}
    requests: list[tuple[Any, ...]] = [
        ("trace_block", "0x1"),
        ("debug_traceBlockByNumber", "0x1"),
        ("debug_traceBlockByNumber", "0x1", calls),
        ("debug_traceBlockByNumber", "0x1", {**calls, "tracerConfig": {"onlyTopCall": True}}),
    ]
    first = [node.ask(*request) for request in requests]
    assert executed == ["trace_flat", "trace_block", "trace_block", "trace_block"]
    assert [node.ask(*request) for request in requests] == first
    assert node.ask("debug_traceBlockByHash", block, {**calls, "timeout": "9s"}) == first[2]
    assert len(executed) == 4


def test_a_recent_transaction_is_traced_once_for_each_kind(traced: tuple[Interface, list[str]]) -> None:
    node, executed = traced
    hash = node.ask("eth_getBlockByNumber", "0x1")["transactions"][0]
    requests: list[tuple[Any, ...]] = [
        ("trace_transaction", hash),
        ("debug_traceTransaction", hash),
        ("debug_traceTransaction", hash, {"tracer": "callTracer"}),
        ("trace_block", "0x1"),
    ]
    first = [node.ask(*request) for request in requests]
    assert executed == ["trace_flat", "trace_transaction", "trace_transaction", "trace_flat"]
    assert [node.ask(*request) for request in requests] == first
    assert len(executed) == 4
    assert node.ask("trace_transaction", "0x" + "11" * 32) == []
    assert node.ask("debug_traceTransaction", "0x" + "11" * 32) is None


def test_traces_of_several_transactions_of_a_block_are_told_apart(traced: tuple[Interface, list[str]]) -> None:
    node, executed = traced
    raws = [legacy_transaction(DEV_KEYS[0], nonce, to=DEV_KEYS[1].address, value=nonce) for nonce in (1, 2)]
    _, hashes = node.run(node.node.mine(*raws))
    for _ in range(2):
        values = [node.ask("trace_transaction", "0x" + hash.hex())[0]["action"]["value"] for hash in hashes]
        assert values == ["0x1", "0x2"]
    assert executed == ["trace_flat", "trace_flat"]


def test_a_block_that_the_client_sends_is_neither_stored_nor_taken_from_the_cache(
    traced: tuple[Interface, list[str]],
) -> None:
    node, executed = traced
    raw = node.ask("debug_getRawBlock", "0x1")
    first = node.ask("debug_traceBlock", raw)
    assert node.ask("debug_traceBlockByNumber", "0x1") == first == node.ask("debug_traceBlock", raw)
    assert len(executed) == 3


def test_after_a_reorganisation_the_new_block_is_traced(traced: tuple[Interface, list[str]], tmp_path: Path) -> None:
    node, executed = traced
    before = node.ask("trace_block", "0x1")
    with open_core(tmp_path / "other") as other:
        node.run(other.mine(legacy_transaction(DEV_KEYS[0], 0, to=DEV_KEYS[1].address, value=7)))
        node.run(other.seal())
        for number in (1, 2):
            header = other.chain.canonical(number)
            assert header is not None
            body = other.chain.store.body(header.hash)
            assert body is not None
            node.run(node.node.core.importer.import_block(ChainBlock(header, body)))
    after = node.ask("trace_block", "0x1")
    assert after[0]["action"]["value"] == "0x7"
    assert after[0]["blockHash"] != before[0]["blockHash"]
    assert len(executed) == 2

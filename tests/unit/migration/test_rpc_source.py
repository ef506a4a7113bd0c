"""Tests blocks of a running node that gives arbitrary answers."""

from __future__ import annotations

from pathlib import Path

from ophion.consensus.engine import Engine
from ophion.errors import CommandError
from ophion.migration.rpc_source import RpcSource
from ophion.runtime.blocking_json_rpc import JsonRpcClient
from ophion.runtime.clock import ManualClock
from tests.unit.hostile_node import BLOCK, ESCAPE_LINE, ODD_BODIES, HostileNode, hostile_node, odd_variants
from tests.unit.producer.authority import KEYS, authority_genesis, open_network


def _read(node: HostileNode, engine: Engine) -> None:
    """Read the head, a hash and some blocks. A wrong answer is a `CommandError`."""
    try:
        source = RpcSource(JsonRpcClient(node.url), engine)
        source.head()
        source.hash_at(3)
        list(source.blocks(5, 6))
    except CommandError as error:
        assert str(error).isprintable()


def test_an_odd_answer_is_one_line(tmp_path: Path) -> None:
    genesis = authority_genesis("qbft", [KEYS[0].address], None, None)
    with hostile_node() as node, open_network(tmp_path, genesis, KEYS[:1], ManualClock()) as (opened,):
        engine = opened.chain.engine
        as_json = {"web3_clientVersion": "Besu/v1", "eth_getBlockByNumber": BLOCK}
        raw = {**as_json, "debug_getRawBlock": "0xc0"}
        for answers in (as_json, raw, *odd_variants(as_json), *odd_variants({**raw, "eth_getBlockByNumber": BLOCK})):
            node.answers = answers
            _read(node, engine)
        for body in ODD_BODIES:
            node.body = body
            _read(node, engine)
        node.raw = ESCAPE_LINE
        _read(node, engine)
